// The files of the dashboard, as a browser receives them. packages/dashboard tests the pages themselves.

import { beforeAll, describe, expect, it } from "vitest";
import { buildDashboard } from "../../../../scripts/build-dashboard.mjs";
import { startAdminServer } from "../../test/support/admin.ts";

beforeAll(() => buildDashboard());

const browser = { "sec-fetch-mode": "navigate", "sec-fetch-dest": "document", "user-agent": "Mozilla/5.0" };

describe("the HTML document of the dashboard", () => {
  it("is open, contains no data, and is the same for each page except for the relative path to its files", async () => {
    const { send } = await startAdminServer({ tokens: ["0123456789abcdef"] });
    for (const [path, assets] of [
      ["/ui", "ui/assets/"],
      ["/ui/runs", "assets/"],
      ["/ui/runs/some-id", "../assets/"],
      ["/ui/runs/some-id/more", "../../assets/"],
    ] as const) {
      const { status, text, headers } = await send("GET", path, { headers: browser });
      expect({ path, status }).toEqual({ path, status: 200 });
      expect(text).toContain(`src="${assets}main-`);
      expect(headers["cache-control"]).toBe("no-cache");
    }
  });

  it("allows only its own scripts and styles, no frames, and one Trusted Types policy", async () => {
    const { send } = await startAdminServer();
    const { headers } = await send("GET", "/ui");
    expect(headers).toMatchObject({
      "content-security-policy":
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; " +
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types longshore",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-resource-policy": "same-origin",
    });
  });

  it("is not sent again to a browser that has it in its cache", async () => {
    const { send } = await startAdminServer();
    const { headers } = await send("GET", "/ui");
    const again = await send("GET", "/ui", { headers: { "if-none-match": `W/${headers.etag}` } });
    expect({ status: again.status, text: again.text }).toEqual({ status: 304, text: "" });
    expect((await send("GET", "/ui", { headers: { "if-none-match": '"another"' } })).status).toBe(200);
  });

  it("can be opened by a link of another site, but its API cannot", async () => {
    const { send } = await startAdminServer();
    const headers = { ...browser, "sec-fetch-site": "cross-site" };
    expect((await send("GET", "/ui/runs", { headers })).status).toBe(200);
    expect((await send("GET", "/api/longshore/v1/runs", { headers })).status).toBe(403);
    expect((await send("GET", "/ui", { headers: { ...headers, "sec-fetch-dest": "iframe" } })).status).toBe(403);
  });
});

describe("the files of the dashboard", () => {
  it("are named after their content, cached without a limit, and sent compressed", async () => {
    const { send } = await startAdminServer();
    const { text } = await send("GET", "/ui");
    const names = [...text.matchAll(/ui\/assets\/([\w.-]+)/g)].map(([, name]) => name);
    const withoutHash = names.map((name) => name?.replace(/-(?:[0-9a-f]{12}|[0-9A-Z]{8})\./, "."));
    expect([...new Set(withoutHash)]).toEqual(["icon.svg", "style.css", "part.js", "main.js"]);
    for (const name of names) {
      for (const [accepted, coding] of [
        ["gzip, deflate, br", "br"],
        ["gzip;q=1.0, br;q=0", "gzip"],
        ["identity", undefined],
      ] as const) {
        const { status, headers } = await send("GET", `/ui/assets/${name}`, { headers: { "accept-encoding": accepted } });
        expect({ status, coding: headers["content-encoding"], vary: headers.vary }).toEqual({
          status: 200,
          coding,
          vary: "accept-encoding",
        });
        expect(headers["cache-control"]).toBe("public, max-age=31536000, immutable");
      }
    }
  });

  it("are only the files of the build", async () => {
    const { send } = await startAdminServer();
    for (const path of ["/ui/assets/main.js", "/ui/assets/manifest.json", "/ui/assets/..%2F..%2Fpackage.json"])
      expect((await send("GET", path)).status).toBe(404);
  });
});

it("a server without the dashboard has none of its addresses", async () => {
  const { send } = await startAdminServer({ ui: false });
  expect((await send("GET", "/ui")).status).toBe(404);
  expect((await send("GET", "/ui/assets/main.js")).status).toBe(404);
});
