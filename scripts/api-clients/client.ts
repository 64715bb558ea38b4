// Makes, lists, edits, deletes and restores every kind of link with the generated types.

import createClient from "openapi-fetch";
import type { components, paths } from "./schema.d.ts";

declare const process: { env: Record<string, string> };

type NewLink = components["schemas"]["NewLink"];

const client = createClient<paths>({
  baseUrl: process.env.CURT_URL,
  headers: { Authorization: `Bearer ${process.env.CURT_API_KEY}` },
});
const later = new Date(Date.now() + 7 * 86_400_000).toISOString();
const kinds: Record<string, Partial<NewLink>> = {
  plain: {},
  alias: { alias: "ts-alias" },
  password: { visibility: "password", password: "open sesame" },
  private: { visibility: "private" },
  expiring: { expires_at: later },
  max_clicks: { max_clicks: 3 },
  tags: { tags: ["ts", "red"], title: "Tagged" },
  "307": { redirect_status: 307 },
};

function check(holds: boolean, what: unknown): asserts holds {
  if (!holds) throw new Error(JSON.stringify(what));
}

const keys: Record<string, string> = {};
for (const [kind, fields] of Object.entries(kinds)) {
  const body: NewLink = { target: `https://example.com/${kind}`, ...fields };
  const { data, error } = await client.POST("/api/v1/links", { body });
  check(data !== undefined && data.state === "active" && data.clicks === 0, error ?? data);
  check(data.is_alias === (kind === "alias"), data);
  keys[kind] = data.key;
}

const seen = new Set<string>();
let cursor: string | undefined;
do {
  const { data, error } = await client.GET("/api/v1/links", { params: { query: { limit: 3, cursor } } });
  check(data !== undefined, error);
  for (const link of data.links) seen.add(link.key);
  cursor = data.next ?? undefined;
} while (cursor !== undefined);
check(Object.values(keys).every((key) => seen.has(key)), [...seen]);

for (const [kind, key] of Object.entries(keys)) {
  const params = { path: { key } };
  const edited = await client.PATCH("/api/v1/links/{key}", { params, body: { title: `${kind} edited` } });
  check(edited.data?.title === `${kind} edited`, edited.error ?? edited.data);
  const deleted = await client.DELETE("/api/v1/links/{key}", { params });
  check(deleted.response.status === 204, deleted.error);
  const shown = await client.GET("/api/v1/links/{key}", { params });
  check(shown.data?.state === "deleted", shown.error ?? shown.data);
  const restored = await client.POST("/api/v1/links/{key}/restore", { params });
  check(restored.data?.state === "active", restored.error ?? restored.data);
  await client.DELETE("/api/v1/links/{key}", { params });
}
const refused = await client.POST("/api/v1/links", { body: { target: "https://example.com/", alias: "ts-alias" } });
check(refused.response.status === 409, refused.data);
console.log(`TypeScript: ${Object.keys(kinds).length} kinds of links made, listed, edited, deleted and restored`);
