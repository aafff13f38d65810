// `longshore schedules` with a server: its output for people and for programs, and its errors.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type Ended, longshore, startServer, temporaryFolder } from "../support/cli.ts";

type Schedules = (...args: string[]) => Promise<Ended>;

async function setup(): Promise<{ schedules: Schedules; cli: Schedules; folder: string }> {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "backup.yml"), "name: Backup\non: demand\njobs: { copy: { run: 'true' } }\n");
  const server = await startServer();
  const cli: Schedules = (...args) => longshore(args, { cwd: folder, env: { LONGSHORE_URL: server.url, TZ: "UTC" } });
  await cli("define", "backup.yml");
  return { cli, folder, schedules: (...args) => cli("schedules", ...args) };
}

it("a schedule is created, listed, shown, paused, resumed and deleted", async () => {
  const { schedules } = await setup();
  expect((await schedules()).stdout).toContain("There are no schedules. Try `longshore schedules set");
  const made = await schedules("set", "nightly", "backup", "--cron", "0 3 * * *", "--timezone", "Asia/Tokyo", "--jitter", "5m");
  expect(made.stdout).toMatch(/^nightly starts its next run at .*18:0\d(?::\d\d)? \(UTC\)\n$/);
  expect((await schedules()).stdout).toMatch(/^SCHEDULE .* NEXT \(UTC\) .*\nnightly +0 3 \* \* \* Asia\/Tokyo +backup/);
  const { stdout } = await schedules("show", "nightly");
  expect(stdout).toMatch(/^nightly {2}0 3 \* \* \* Asia\/Tokyo {2}starts backup\n {2}overlap {5}skip\n/);
  expect(stdout.match(/ 03:00 {2}\d{4}-\d\d-\d\dT18:00:00Z /g)).toHaveLength(10);
  expect((await schedules("pause", "nightly", "--reason", "the warehouse is closed")).stdout).toBe(
    "nightly paused: the warehouse is closed\n",
  );
  expect((await schedules("list", "--workflow", "backup")).stdout).toMatch(/paused .*the warehouse is closed/);
  expect((await schedules("resume", "nightly")).stdout).toMatch(/^nightly starts its next run at /);
  expect((await schedules("delete", "nightly", "--json")).stdout).toBe('{"name":"nightly","deleted":true}\n');
  expect(await schedules("delete", "nightly")).toMatchObject({ code: 2 });
});

it("a schedule is run by hand and backfilled, and its ticks are shown", async () => {
  const { schedules } = await setup();
  await schedules("set", "s", "backup", "--every", "1h", "--input", '{"big":12345678901234567890}');
  const started = await schedules("run", "s");
  expect(started.stdout).toMatch(/^[0-9A-Z]{26}\n$/);
  expect((await schedules("run", "s")).stderr).toContain("its overlap rule is skip");
  const run = JSON.parse((await schedules("run", "s", "--overlap", "allow", "--json")).stdout);
  expect(run).toMatchObject({ workflow: "backup", state: "running" });
  const range = ["--from", "2026-03-01", "--to", "2026-03-01T04:00:00Z"];
  expect((await schedules("backfill", "s", ...range)).stdout).toBe("s starts 5 runs, queue\n");
  const { stdout } = await schedules("show", "s");
  expect(stdout).toContain('input       {"big":12345678901234567890}');
  expect(stdout).toMatch(/backfill {4}\d of 5 started/);
  expect(stdout).toMatch(new RegExp(`started {2}by hand +${started.stdout.trim()}`));
  expect((await schedules("backfill", "s", "--end")).stdout).toBe("s has no backfill any more\n");
  expect((await schedules("backfill", "s")).stderr).toContain("backfill takes either --from TIME or --end, but none was given");
});

it("times are shown without a schedule, also over a change of daylight saving time", async () => {
  const { schedules } = await setup();
  const { stdout } = await schedules("next", "--at", "2199-12-24T18:00:00+01:00");
  expect(stdout).toMatch(/Tue 2199-12-24 17:00 {2}2199-12-24T17:00:00Z {2}\d+ d \d+ h\n$/);
  const json = JSON.parse((await schedules("next", "--cron", "30 2 * * *", "--timezone", "Europe/Berlin", "--json")).stdout);
  expect(json.times).toHaveLength(10);
  await schedules("set", "s", "backup", "--every", "1h", "--jitter", "10m");
  expect((await schedules("next", "s")).stdout).toMatch(/^UTC .* IN .* JITTER\n(\w{3} .*\n){10}$/);
  expect((await schedules()).stdout).not.toContain("30 2");
});

it("schedules of a module or a definition file are created with their workflows", async () => {
  const { cli, schedules, folder } = await setup();
  const app = `import { graph, schedule, task } from "longshore";
export const copy = task("copy", async () => 1);
const order = graph("order", (g) => g.step(copy, {}));
export const nightly = schedule("nightly", { cron: "0 3 * * *", workflow: order, input: { a: 1 } });
`;
  writeFileSync(join(folder, "app.mjs"), app);
  expect((await cli("define", "app.mjs")).stdout).toMatch(/^order version 1\nnightly starts its next run at .*03:00/);
  expect(JSON.parse((await schedules("show", "nightly", "--json")).stdout)).toMatchObject({
    workflow: "order",
    source: null,
    input: { a: 1 },
  });
  writeFileSync(join(folder, "app.mjs"), app.replace("0 3", "99 3"));
  expect((await cli("define", "app.mjs")).stderr).toContain('cron is "99 3 * * *"');
  writeFileSync(join(folder, "tick.yml"), "name: T\non: { schedule: [{ every: 1d }] }\njobs: { a: { run: 'true' } }\n");
  await cli("define", "tick.yml");
  expect((await schedules("show", "tick")).stdout).toMatch(/^tick {2}every 1d {2}starts tick\n {2}defined by {2}the definition of tick\n/);
  expect((await schedules("set", "tick", "order", "--every", "1h")).stderr).toContain("belongs to the definition file of workflow tick");
});

it("errors name what is expected, and suggest similar names for unknown ones", async () => {
  const { schedules, cli } = await setup();
  await schedules("set", "nightly", "backup", "--cron", "0 3 * * *");
  expect((await schedules("show", "nigthly")).stderr).toBe('longshore: There is no schedule "nigthly". Did you mean "nightly"?\n');
  expect((await schedules("set", "a", "backup", "--cron", "61 * * * *")).stderr).toContain('cron is "61 * * * *"');
  expect((await schedules("set", "a", "backup")).stderr).toContain("one of cron, every and at");
  expect((await schedules("pause", "nightly")).stderr).toContain("Try `longshore schedules pause --help`.");
  const { stderr } = await schedules("show", "none", "--json");
  expect(JSON.parse(stderr).error).toMatchObject({ code: "LONGSHORE_NOT_FOUND" });
  expect((await cli("schedules", "--help")).stdout).toMatch(/backfill \[options\] <schedule>/);
});
