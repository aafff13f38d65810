// What the tests of the pages share: a browser, and a server with workers and runs. Without Chromium, the tests are skipped.

import type { Browser, BrowserContextOptions } from "playwright-core";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { chromiumMissing, openPage, startBrowser, type WatchedPage } from "./browser.ts";
import { openTown, type Town } from "./port-town.ts";

/** Starts a browser before the tests of a file, and closes it after them. */
export function useBrowser(): { readonly browser: Browser } {
  let browser: Browser;
  beforeAll(async () => {
    if (chromiumMissing === undefined) browser = await startBrowser();
  });
  beforeEach((context) => {
    if (chromiumMissing !== undefined) context.skip(`needs ${chromiumMissing}`);
  });
  afterAll(() => browser?.close());
  return {
    get browser() {
      return browser;
    },
  };
}

/** Also opens a town before the tests, and closes it after them. */
export function useTown(...options: Parameters<typeof openTown>) {
  const opened = useBrowser();
  let town: Town;
  beforeAll(async () => {
    if (chromiumMissing !== undefined) return;
    town = await openTown(...options);
    await town.settled();
  });
  afterAll(() => town?.close());
  return {
    get browser() {
      return opened.browser;
    },
    get town() {
      return town;
    },
    open: (context?: BrowserContextOptions): Promise<WatchedPage> => openPage(opened.browser, town.url, context),
    /** Opens an address of the town in a new page, signed in with the token. */
    async openAt(path: string, token?: string): Promise<WatchedPage> {
      const all = await openPage(opened.browser, town.url);
      await all.page.goto(`${town.url}${path}${token === undefined ? "" : `#token=${token}`}`);
      await all.page.locator("#title").waitFor();
      return all;
    },
  };
}
