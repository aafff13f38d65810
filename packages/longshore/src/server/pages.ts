// Serves the files of the dashboard: one HTML page for all of its addresses, and assets whose names contain a hash of their content. The
// files contain no data and need no token. A page reads its data from the API with the token of its user.
//
// `npm run build` writes them to dist/ui. They are read when a browser first asks for them.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { LongshoreError } from "../core/errors.ts";
import type { HttpReply, HttpRequest, Route, RouteGroup } from "../net/http/http.ts";
import { refuse } from "../net/http/problem.ts";

interface Manifest {
  readonly shell: string;
  readonly files: readonly { readonly name: string; readonly type: string }[];
}

/** The same folder from src/server and from dist/server. */
const folder = new URL("../../dist/ui/", import.meta.url);

/** Scripts set styles through the object model and never as text. The only Trusted Types policy creates the address of one web worker. */
const contentSecurity = [
  "default-src 'none'",
  ...["script-src", "style-src", "connect-src", "worker-src", "manifest-src"].map((kind) => `${kind} 'self'`),
  "img-src 'self' data:",
  ...["base-uri", "form-action", "frame-ancestors"].map((kind) => `${kind} 'none'`),
  "require-trusted-types-for 'script'",
  "trusted-types longshore",
].join("; ");

const fileHeaders = { "cross-origin-resource-policy": "same-origin", "referrer-policy": "no-referrer" };
const shellHeaders = {
  ...fileHeaders,
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": contentSecurity,
  "cross-origin-opener-policy": "same-origin",
  // The browser checks it at each visit, by its ETag.
  "cache-control": "no-cache",
};

/** The addresses of pages, such as `/ui/runs/:id`. */
const depths = ["/ui", "/ui/:a", "/ui/:a/:b", "/ui/:a/:b/:c"];

/** The routes of the dashboard. */
export function pageRoutes(): RouteGroup {
  const assets = new Assets();
  const page = { method: "GET", action: "server.greet", body: "none" } as const;
  const routes: Route[] = [
    ...depths.map((path, depth) => ({ ...page, path, page: true, handle: (request: HttpRequest) => assets.shell(depth, request) })),
    { ...page, path: "/ui/assets/:file", handle: (request) => assets.file(request) },
  ];
  return { name: "pages", routes, refuse };
}

class Assets {
  #manifest: Manifest | undefined;
  /** By file name and coding. */
  readonly #contents = new Map<string, Uint8Array>();
  readonly #shells: { readonly body: string; readonly etag: string }[] = [];

  shell(depth: number, { headers }: HttpRequest): HttpReply {
    const { shell } = this.#read();
    // Relative addresses, because a proxy may serve this server below another path.
    const assets = depth === 0 ? "ui/assets/" : `${"../".repeat(depth - 1)}assets/`;
    this.#shells[depth] ??= withEtag(shell.replaceAll("ASSETS", assets));
    const { body, etag } = this.#shells[depth];
    const isKnown = headers["if-none-match"]?.includes(etag) ?? false;
    return isKnown ? { status: 304, headers: { ...shellHeaders, etag } } : { status: 200, headers: { ...shellHeaders, etag }, body };
  }

  file({ params, headers }: HttpRequest): HttpReply {
    const { file: name = "" } = params;
    const known = this.#read().files.find((file) => file.name === name);
    if (known === undefined)
      return refuse({
        kind: "not-found",
        status: 404,
        message: "There is no such file. Reload the page: the server has another version of it.",
      });
    const coding = codingOf(headers["accept-encoding"]);
    return {
      status: 200,
      headers: {
        ...fileHeaders,
        "content-type": known.type,
        "cache-control": "public, max-age=31536000, immutable",
        vary: "accept-encoding",
        ...(coding === undefined ? {} : { "content-encoding": coding === "gz" ? "gzip" : "br" }),
      },
      body: this.#content(name, coding),
    };
  }

  #read(): Manifest {
    try {
      this.#manifest ??= JSON.parse(readFileSync(new URL("manifest.json", folder), "utf8")) as Manifest;
    } catch (cause) {
      throw new LongshoreError("LONGSHORE_NOT_FOUND", "The dashboard is not built. In a clone of the repository, run `npm run build`.", {
        cause,
      });
    }
    return this.#manifest;
  }

  #content(name: string, coding: "br" | "gz" | undefined): Uint8Array {
    const key = `${name}.${coding ?? ""}`;
    const kept = this.#contents.get(key);
    if (kept !== undefined) return kept;
    const stored = readFileSync(new URL(`${name}.${coding ?? "gz"}`, folder));
    const content = coding === undefined ? gunzipSync(stored) : stored;
    this.#contents.set(key, content);
    return content;
  }
}

function withEtag(body: string): { body: string; etag: string } {
  return { body, etag: `"${createHash("sha256").update(body).digest("hex").slice(0, 16)}"` };
}

/** Browsers accept Brotli over TLS and on loopback. */
function codingOf(accepted = ""): "br" | "gz" | undefined {
  const codings = accepted.split(",").map((text) => text.split(";").map((field) => field.trim()));
  const accepts = (name: string) => codings.some(([coding, quality]) => coding === name && quality !== "q=0");
  if (accepts("br")) return "br";
  return accepts("gzip") ? "gz" : undefined;
}
