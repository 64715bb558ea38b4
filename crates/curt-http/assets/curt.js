// The pages work without this. It adds copying to the clipboard, selects a short link when it gets the focus, shows
// passwords on demand, and puts times into the visitor's zone.
"use strict";

async function copy(field) {
  if (navigator.clipboard && window.isSecureContext) {
    try {
      await navigator.clipboard.writeText(field.value);
      return;
    } catch {
      // Refused by a setting of the browser, which may still allow the old way.
    }
  }
  // Plain http on another machine has no clipboard interface; the old way still works there.
  field.select();
  if (!document.execCommand("copy")) {
    throw new Error("the browser refused to copy");
  }
}

for (const button of document.querySelectorAll("button[data-copy]")) {
  const field = document.getElementById(button.dataset.copy);
  const label = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await copy(field);
      button.textContent = "Copied";
    } catch {
      field.select();
      button.textContent = "Press Ctrl+C";
    }
    setTimeout(() => {
      button.textContent = label;
    }, 2000);
  });
  field.addEventListener("focus", () => field.select());
}

for (const button of document.querySelectorAll("button[data-reveal]")) {
  const field = document.getElementById(button.dataset.reveal);
  button.hidden = false;
  button.addEventListener("click", () => {
    const shows = field.type === "password";
    field.type = shows ? "text" : "password";
    button.textContent = shows ? "Hide" : "Show";
  });
}

function localTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (!Number.isNaN(at.getTime())) {
      time.title = time.textContent;
      time.textContent = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
    }
  }
}

localTimes(document);

// A link into the API page should find its operation open.
function reveal() {
  const wanted = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (wanted instanceof HTMLDetailsElement) {
    wanted.open = true;
  }
}

window.addEventListener("hashchange", reveal);
reveal();
