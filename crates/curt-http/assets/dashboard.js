
// Buttons that copy what no field holds.
async function copyText(text) {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "unseen";
  document.body.append(field);
  try {
    await copy(field);
  } finally {
    field.remove();
  }
}

function wireCopyButtons(root) {
  for (const button of root.querySelectorAll("button[data-copy-text]")) {
    const label = button.textContent;
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await copyText(button.dataset.copyText);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Not copied";
      }
      setTimeout(() => {
        button.textContent = label;
      }, 2000);
    });
  }
}

// Ticks all links of a page.
for (const all of document.querySelectorAll("input[data-tick-all]")) {
  all.hidden = false;
  all.addEventListener("change", () => {
    for (const box of document.querySelectorAll("input[name=key]")) {
      box.checked = all.checked;
    }
  });
}

// What a column or a tile says, beside the pointer and at once; browsers show a title late, and not to fingers.
const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
tip.setAttribute("aria-hidden", "true");
document.body.append(tip);

document.addEventListener("pointermove", (event) => {
  const part = event.target instanceof Element && event.target.closest("figure svg g");
  const title = part && part.querySelector("title");
  if (title) {
    part.dataset.tip = title.textContent;
    title.remove();
  }
  tip.hidden = !part;
  if (part) {
    tip.textContent = part.dataset.tip;
    tip.style.left = `${Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.max(event.clientY - 36, 4)}px`;
  }
});

// The browser's own time zone, offered where none was chosen.
for (const field of document.querySelectorAll("input[data-zone]")) {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone && !new URLSearchParams(location.search).has("tz") && field.value !== zone) {
    const offer = document.createElement("a");
    const query = new URLSearchParams(location.search);
    query.set("tz", zone);
    offer.href = `?${query}`;
    offer.textContent = `Show in ${zone}`;
    offer.className = "hint";
    field.closest("details").after(offer);
  }
}

// Live numbers: the total goes up with each event, and the rest of the report is read again soon after.
function grouped(number) {
  return number.toLocaleString("en-US");
}

async function refresh() {
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!answer.ok) {
    return;
  }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.querySelectorAll("[data-live]");
  const shown = document.querySelectorAll("[data-live]");
  if (fresh.length !== shown.length) {
    return;
  }
  shown.forEach((part, at) => {
    const open = [...part.querySelectorAll("details")].map((details) => details.open);
    if (!part.contains(document.activeElement)) {
      part.replaceChildren(...fresh[at].childNodes);
      part.querySelectorAll("details").forEach((details, index) => {
        details.open = open[index] ?? false;
      });
      localTimes(part);
    }
  });
}

for (const place of document.querySelectorAll("[data-live-total]")) {
  const total = place.querySelector("output");
  const state = document.querySelector("[data-live-state]");
  const feed = new EventSource(place.dataset.liveTotal);
  let waiting = null;
  const say = (text) => {
    if (state) {
      state.hidden = false;
      state.textContent = text;
    }
  };
  feed.addEventListener("open", () => say("Live."));
  feed.addEventListener("error", () => say("Not live right now."));
  feed.addEventListener("clicks", (event) => {
    const { counts } = JSON.parse(event.data);
    const known = total && Number(total.textContent.replaceAll(",", ""));
    if (total && Number.isFinite(known) && counts.human > 0) {
      total.textContent = grouped(known + counts.human);
      total.classList.add("fresh");
      setTimeout(() => total.classList.remove("fresh"), 1500);
    }
    waiting ??= setTimeout(() => {
      waiting = null;
      refresh().catch(() => {});
    }, 2000);
  });
  feed.addEventListener("end", () => {
    feed.close();
    say("Not live any more: load the page again.");
  });
  addEventListener("pagehide", () => feed.close());
}

wireCopyButtons(document);
