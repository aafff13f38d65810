// The page at `/`, for a person who opens the server's address in a browser or with curl. The same text for every caller and from every
// server: it is open, so it must disclose nothing about this one.

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
const intro = "It runs tasks and workflows. There are no pages here; use the command line, or HTTP.";
const plainHeaders = { "content-type": "text/plain; charset=utf-8", vary: "accept" };
const htmlHeaders = {
  "content-type": "text/html; charset=utf-8",
  vary: "accept",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
};

const plain = [title, "", intro, "", ...lines(commands), "", ...lines(places), ""].join("\n");
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

export function welcomeOperation(tag: string): Operation {
  return operation({
    ...{ id: "welcome", tag, method: "GET", path: "/", root: true, action: "server.greet", page: true },
    summary: "Show where to look. Needs no token; HTML for browsers.",
    answers: { 200: { description: "A few lines, the same from every server.", contentType: "text/plain" } },
    handle: ({ request }) => welcome(request),
  });
}

function welcome({ headers }: HttpRequest): HttpReply {
  const wantsHtml = headers.accept?.includes("text/html") ?? false;
  return wantsHtml ? { status: 200, headers: htmlHeaders, body: html } : { status: 200, headers: plainHeaders, body: plain };
}

function lines(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...[...commands, ...places].map(([name]) => name.length));
  return rows.map(([name, what]) => `  ${name.padEnd(width)}  ${what}`);
}
