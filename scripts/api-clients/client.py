"""Makes, lists, edits, deletes and restores every kind of link with the generated client."""

import datetime
import os

from curt_client import AuthenticatedClient
from curt_client.api.links import create_link, delete_link, edit_link, get_link, list_links, restore_link
from curt_client.models import Link, LinkChanges, LinkRestoration, LinkState, NewLink, Problem, RedirectStatus, Visibility
from curt_client.types import UNSET

client = AuthenticatedClient(base_url=os.environ["CURT_URL"], token=os.environ["CURT_API_KEY"])
later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=7)
kinds = {
    "plain": {},
    "alias": {"alias": "py-alias"},
    "password": {"visibility": Visibility.PASSWORD, "password": "open sesame"},
    "private": {"visibility": Visibility.PRIVATE},
    "expiring": {"expires_at": later},
    "max_clicks": {"max_clicks": 3},
    "tags": {"tags": ["py", "red"], "title": "Tagged"},
    "307": {"redirect_status": RedirectStatus.VALUE_307},
}


def link(answer):
    assert isinstance(answer, Link), answer
    return answer


keys = {}
for kind, fields in kinds.items():
    made = link(create_link.sync(client=client, body=NewLink(target=f"https://example.com/{kind}", **fields)))
    assert made.state == LinkState.ACTIVE and made.clicks == 0, made
    assert made.is_alias == (kind == "alias"), made
    keys[kind] = made.key
assert link(get_link.sync(keys["password"], client=client)).visibility == Visibility.PASSWORD
assert link(get_link.sync(keys["max_clicks"], client=client)).max_clicks == 3
assert link(get_link.sync(keys["tags"], client=client)).tags == ["py", "red"]

seen, cursor = set(), UNSET
while True:
    page = list_links.sync(client=client, limit=3, cursor=cursor)
    seen.update(one.key for one in page.links)
    if page.next_ is None:
        break
    cursor = page.next_
assert set(keys.values()) <= seen, seen

for kind, key in keys.items():
    edited = link(edit_link.sync(key, client=client, body=LinkChanges(title=f"{kind} edited")))
    assert edited.title == f"{kind} edited", edited
    deleted = delete_link.sync_detailed(key, client=client)
    assert deleted.status_code == 204, deleted
    assert link(get_link.sync(key, client=client)).state == LinkState.DELETED
    assert link(restore_link.sync(key, client=client, body=LinkRestoration())).state == LinkState.ACTIVE
    assert delete_link.sync_detailed(key, client=client).status_code == 204

refused = create_link.sync(client=client, body=NewLink(target="https://example.com/", alias="py-alias"))
assert isinstance(refused, Problem) and refused.status == 409, refused
print(f"Python: {len(kinds)} kinds of links made, listed, edited, deleted and restored")
