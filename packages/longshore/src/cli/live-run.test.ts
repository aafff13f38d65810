// Tests the drawing in place. The output is read as a terminal reads it: by moving a cursor over lines.

import { expect, it } from "vitest";
import type { Run, Step } from "./api.ts";
import { type Client, Unreachable } from "./client.ts";
import { type Screen, showRun } from "./live-run.ts";

const control = String.fromCharCode(27);

/** A terminal that supports the three control sequences that are used. */
class FakeTerminal implements Screen {
  readonly isTTY = true;
  readonly columns = 60;
  readonly rows = 10;
  readonly lines: string[] = [];
  cursorShown = true;
  #at = 0;

  write(text: string): boolean {
    const sequences = new RegExp(`${control}\\[(\\??\\d+)([AJKlhm])|\\n|([^${control}\\n]+)`, "g");
    for (const [whole, count, kind, words] of text.matchAll(sequences)) {
      if (whole === "\n") this.#at++;
      else if (words !== undefined) this.lines[this.#at] = (this.lines[this.#at] ?? "") + words;
      else if (kind === "A") this.#at -= Number(count);
      else if (kind === "K") this.lines[this.#at] = "";
      else if (kind === "J") this.lines.length = this.#at;
      else if (kind === "l" || kind === "h") this.cursorShown = kind === "h";
    }
    return true;
  }
}

/** Returns these states, one after the other. */
function clientOf(states: readonly { state: Run["state"]; step: Partial<Step> }[]): Client {
  let at = 0;
  const now = () => states[Math.min(at, states.length - 1)] as (typeof states)[number];
  const get = async (path: string) => {
    if (!path.endsWith("/steps")) return { id: "R1", workflow: "w", state: now().state, createdAt: Date.now(), endedAt: null };
    const items = [{ id: "build", after: [], attempt: 1, error: null, startedAt: null, endedAt: null, lastLine: null, ...now().step }];
    at++;
    return { items, next: null };
  };
  return clientWith(get);
}

/** Answers every request with `get`. */
function clientWith(get: (path: string) => Promise<unknown>): Client {
  return {
    url: "",
    get: get as Client["get"],
    post: get as Client["post"],
    put: get as Client["put"],
    delete: get as Client["delete"],
    async *events() {},
  };
}

it("draws over its earlier output, leaves the last state on the screen and shows the cursor again", async () => {
  const terminal = new FakeTerminal();
  const client = clientOf([
    { state: "running", step: { state: "queued" } },
    // The command still follows a paused run when the run continues.
    { state: "paused", step: { state: "held", lastLine: "compiling" } },
    { state: "succeeded", step: { state: "done", lastLine: "compiled" } },
  ]);
  const { run } = await showRun(client, "R1", terminal);
  expect(run.state).toBe("succeeded");
  expect(terminal.lines).toHaveLength(2);
  expect(terminal.lines[0]).toMatch(/^w {2}succeeded/);
  expect(terminal.lines[1]).toMatch(/✓ build {2}done .*compiled$/);
  expect(terminal.cursorShown).toBe(true);
});

it("never draws more lines than the terminal has, and removes lines that are not drawn again", async () => {
  const terminal = new FakeTerminal();
  const states: Step["state"][] = ["held", "done"];
  let at = 0;
  const get = async (path: string) => {
    if (!path.endsWith("/steps"))
      return { id: "R1", workflow: "w", state: at < 2 ? "paused" : "failed", createdAt: Date.now(), endedAt: null };
    const items = Array.from({ length: at === 0 ? 200 : 3 }, (_, n) => {
      const state = n === 2 ? "failed" : states[Math.min(at, 1)];
      return { id: `s${n}`, after: [], attempt: 1, error: null, startedAt: null, endedAt: null, lastLine: null, state };
    });
    at++;
    return { items, next: null };
  };
  const drawn: number[] = [];
  const write = (text: string) => terminal.write(text) && drawn.push(terminal.lines.length) > 0;
  const screen: Screen = { isTTY: true, columns: 60, rows: 10, write };
  await showRun(clientWith(get), "R1", screen);
  expect(Math.max(...drawn)).toBe(9);
  expect(terminal.lines.map((line) => line.split(" ")[1])).toEqual(["", "s0", "s1", "s2"]);
});

it("continues when the server is down at the first request", async () => {
  const client = clientOf([{ state: "succeeded", step: { state: "done" } }]);
  let away = 1;
  const get = (path: string) =>
    away-- > 0 ? Promise.reject(new Unreachable("no server answers", new Error("ECONNREFUSED"))) : client.get(path);
  const lines: string[] = [];
  const output = { isTTY: false, write: (text: string) => lines.push(text) > 0 };
  const { run } = await showRun({ ...client, get: get as Client["get"] }, "R1", output);
  expect(run.state).toBe("succeeded");
  expect(lines.join("")).toMatch(/^w R1\n✓ build done\nw succeeded after /);
});
