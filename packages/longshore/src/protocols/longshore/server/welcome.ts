// The page at `/`, for a person who opens the server's address in a browser or with curl. A browser is sent to the dashboard, if there is
// one. The same text for every caller: it is open, so it must disclose nothing about this server.

import type { HttpReply, HttpRequest } from "../../../net/http/http.ts";
import { apiPrefix } from "../wire/shapes.ts";
import { type Operation, operation } from "./operation.ts";

const places: readonly (readonly [path: string, what: string])[] = [
  ["/health", "whether the server can take work"],
  ["/metrics", "its figures, for Prometheus"],
  [`${apiPrefix}/openapi.json`, "its HTTP API, described"],
];

const commands: readonly (readonly [command: string, what: string])[] = [
  ["npx longshore runs", "what has been run"],
  ["npx longshore workers", "who works for it"],
  ["npx longshore help", "everything else"],
];

const title = "A Longshore server";
const intro = "It runs tasks and workflows. Use the command line, or HTTP.";
/** For those who read the text and could use a browser. */
const page = ["/ui", "the same in a browser"] as const;
const plainHeaders = { "content-type": "text/plain; charset=utf-8", vary: "accept" };
const htmlHeaders = {
  "content-type": "text/html; charset=utf-8",
  vary: "accept",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
};

const plainOf = (hasPages: boolean) =>
  [title, "", intro, "", ...lines(commands), "", ...lines(hasPages ? [page, ...places] : places), ""].join("\n");
const [plain, plainWithPages] = [plainOf(false), plainOf(true)];
const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>${title}</title>
<h1>${title}</h1>
<p>${intro}</p>
<ul>
${commands.map(([command, what]) => `<li><code>${command}</code>: ${what}</li>`).join("\n")}
</ul>
<ul>
${places.map(([path, what]) => `<li><a href="${path}">${path}</a>: ${what}</li>`).join("\n")}
</ul>
</html>
`;

export function welcomeOperation(tag: string, hasPages: boolean): Operation {
  return operation({
    ...{ id: "welcome", tag, method: "GET", path: "/", root: true, action: "server.greet", page: true },
    summary: "Show where to look. Needs no token. Browsers are sent to the dashboard, if the server has one.",
    answers: {
      200: { description: "A few lines.", contentType: "text/plain" },
      303: { description: "The dashboard, for browsers." },
    },
    handle: ({ request }) => welcome(request, hasPages),
  });
}

function welcome({ headers }: HttpRequest, hasPages: boolean): HttpReply {
  const wantsHtml = headers.accept?.includes("text/html") ?? false;
  if (!wantsHtml) return { status: 200, headers: plainHeaders, body: hasPages ? plainWithPages : plain };
  // Relative: a proxy may serve this server below another path.
  return hasPages ? { status: 303, headers: { location: "ui", vary: "accept" } } : { status: 200, headers: htmlHeaders, body: html };
}

function lines(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...[...commands, ...places].map(([name]) => name.length));
  return rows.map(([name, what]) => `  ${name.padEnd(width)}  ${what}`);
}
