// Debian's Chromium, and pages that note everything that a page of ours must never do: violate its policy, write errors to the console, or ask
// another host for something.

import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

const program = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find((path) => existsSync(path));

/** What is missing on this machine; the tests skip themselves and name it. */
export const chromiumMissing = program === undefined ? "Chromium (Debian package chromium)" : undefined;

const args = [
  ...["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
  ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
  // No name of another host leads anywhere: every test runs as on a machine without a network.
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
];

export function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: program as string, args });
}

export interface WatchedPage {
  readonly page: Page;
  /** Violations of the policy, errors of the console and of scripts, and requests to other hosts. */
  readonly faults: string[];
  /** The paths that were requested, in order. */
  readonly requests: string[];
}

const axeScript = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function openPage(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<WatchedPage> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, acceptDownloads: true, ...options });
  return watched(await context.newPage(), url);
}

export async function watched(page: Page, url: string): Promise<WatchedPage> {
  const faults: string[] = [];
  const requests: string[] = [];
  page.setDefaultTimeout(20_000);
  page.on("console", (message) => {
    // A refused token, a missing run and a server that is away are answers that the tests ask for.
    if (message.type() === "error" && !/Failed to load resource/.test(message.text())) faults.push(`console: ${message.text()}`);
    if (/Refused to|Content Security Policy|TrustedHTML|TrustedScript/.test(message.text())) faults.push(`policy: ${message.text()}`);
  });
  page.on("pageerror", (error) => void faults.push(`script: ${error.message}`));
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    const { origin, pathname, search } = new URL(request.url());
    requests.push(pathname + search);
    if (origin !== new URL(url).origin && !request.url().startsWith("blob:")) faults.push(`request: ${request.url()}`);
  });
  return { page, faults, requests };
}

/** What axe finds on the page as it is. */
export async function axe(page: Page): Promise<string[]> {
  await page.evaluate(axeScript);
  const found = (await page.evaluate("axe.run().then((r) => r.violations.map((v) => v.id + ': ' + v.nodes[0].html))")) as string[];
  return found;
}

/** Evaluated as text: the tests have no types of the document. */
export function textOf(page: Page): Promise<string> {
  return page.evaluate("document.body.innerText") as Promise<string>;
}
