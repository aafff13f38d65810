// The scheduler's API.
import type { Chapter } from "../../../src/differential/script.ts";
import { del, get, operator, post, put, workflow, workflowDef } from "../steps.ts";

const NIGHTLY = "0 0 3 * * *";
const request = { name: "scheduled_flow", version: 1, input: { a: 1 }, correlationId: "cs" };
const schedule = (name: string, more: Record<string, unknown> = {}) => ({
  name,
  cronExpression: NIGHTLY,
  startWorkflowRequest: request,
  ...more,
});
const times = (query: string): string => `/scheduler/nextFewSchedules?${query}`;
const cron = (text: string): string => `cronExpression=${encodeURIComponent(text)}`;
/** The recording keeps times of the year 2033 and later as they are. */
const WITHIN = "scheduleStartTime=2000000000000&scheduleEndTime=2000800000000";

export const schedules: Chapter = {
  name: "schedules",
  steps: [
    workflowDef("define", workflow("scheduled_flow", [operator("NOOP", "noop")])),
    get("none", "/scheduler/schedules"),
    post("make", "/scheduler/schedules", schedule("first", { description: "each night" })),
    get("read", "/scheduler/schedules/first"),
    get("unknown", "/scheduler/schedules/nope"),
    post("replace", "/scheduler/schedules", schedule("first", { cronExpression: "0 0 4 * * MON-FRI", zoneId: "Europe/Berlin" })),
    get("read the replaced", "/scheduler/schedules/first"),
    post(
      "make a paused one",
      "/scheduler/schedules",
      schedule("second", { paused: true, pausedReason: "not yet", runCatchupScheduleInstances: true }),
    ),
    get("read the paused", "/scheduler/schedules/second"),
    post("make one with several times", "/scheduler/schedules", {
      name: "third",
      cronSchedules: [{ cronExpression: NIGHTLY, zoneId: "Europe/Berlin" }, { cronExpression: "0 30 12 * * SAT,SUN" }],
      startWorkflowRequest: { name: "scheduled_flow", priority: 3, taskToDomain: { "*": "d" } },
    }),
    post(
      "make one with a range",
      "/scheduler/schedules",
      schedule("fourth", { scheduleStartTime: 2_000_000_000_000, scheduleEndTime: 2_100_000_000_000 }),
    ),
    get("list", "/scheduler/schedules"),
    get("list of a workflow", "/scheduler/schedules?workflowName=scheduled_flow"),
    get("list of another workflow", "/scheduler/schedules?workflowName=other"),
    get("search", "/scheduler/schedules/search?sort=name:ASC"),
    get("search the paused", "/scheduler/schedules/search?paused=true"),
    get("search by name", "/scheduler/schedules/search?scheduleName=first"),
    get("search by part of a name", "/scheduler/schedules/search?scheduleName=fir"),
    get("search by text", "/scheduler/schedules/search?freeText=third"),
    get("search one", "/scheduler/schedules/search?size=1&start=1"),
    put("pause", "/scheduler/schedules/first/pause?reason=why"),
    get("read the one just paused", "/scheduler/schedules/first"),
    put("pause again", "/scheduler/schedules/first/pause"),
    put("resume", "/scheduler/schedules/first/resume"),
    put("resume again", "/scheduler/schedules/first/resume"),
    get("read the resumed", "/scheduler/schedules/first"),
    put("pause unknown", "/scheduler/schedules/nope/pause"),
    put("resume unknown", "/scheduler/schedules/nope/resume"),
    put("pause several", "/scheduler/bulk/pause", ["first", "third", "nope"]),
    put("resume several", "/scheduler/bulk/resume", ["first", "third", "nope"]),
    put("pause none", "/scheduler/bulk/pause", []),
    get("times", times(`${cron(NIGHTLY)}&${WITHIN}`)),
    get("times, two", times(`${cron(NIGHTLY)}&${WITHIN}&limit=2`)),
    get("times, at most five", times(`${cron("0 */10 * * * *")}&${WITHIN}&limit=9`)),
    get("times, of seconds", times(`${cron("*/20 * * * * *")}&${WITHIN}&limit=3`)),
    get("times, last day of the month", times(`${cron("0 0 0 L * *")}&scheduleStartTime=2000000000000&limit=3`)),
    get("times, second Friday", times(`${cron("0 0 0 ? * FRI#2")}&scheduleStartTime=2000000000000&limit=3`)),
    get("times, last Friday", times(`${cron("0 0 0 * * 5L")}&scheduleStartTime=2000000000000&limit=3`)),
    get("times, nearest workday", times(`${cron("0 0 0 15W * *")}&scheduleStartTime=2000000000000&limit=3`)),
    get("times, day and weekday", times(`${cron("0 0 0 13 * FRI")}&scheduleStartTime=2000000000000&limit=3`)),
    get("times, Sunday as 7", times(`${cron("0 0 0 * * 7")}&scheduleStartTime=2000000000000&limit=2`)),
    get("times, by a word", times(`${cron("@weekly")}&scheduleStartTime=2000000000000&limit=2`)),
    get("times, five fields", times(`${cron("0 3 * * *")}&${WITHIN}`)),
    get("times, of nonsense", times(cron("nope"))),
    get("times, of nothing", "/scheduler/nextFewSchedules"),
    post("without a name", "/scheduler/schedules", { cronExpression: NIGHTLY, startWorkflowRequest: request }),
    post("without times", "/scheduler/schedules", { name: "fifth", startWorkflowRequest: request }),
    post("without a request", "/scheduler/schedules", { name: "fifth", cronExpression: NIGHTLY }),
    post("with a bad expression", "/scheduler/schedules", schedule("fifth", { cronExpression: "nope" })),
    post("in an unknown zone", "/scheduler/schedules", schedule("fifth", { zoneId: "Nowhere/At-all" })),
    post("of an unknown workflow", "/scheduler/schedules", {
      name: "fifth",
      cronExpression: NIGHTLY,
      startWorkflowRequest: { name: "no_such_flow" },
    }),
    get("no starts yet", "/scheduler/search/executions"),
    get("requeue", "/scheduler/admin/requeue"),
    get("pause all", "/scheduler/admin/pause"),
    get("resume all", "/scheduler/admin/resume"),
    del("remove", "/scheduler/schedules/first"),
    del("remove again", "/scheduler/schedules/first"),
    ...["second", "third", "fourth", "fifth"].map((name) => del(`remove ${name}`, `/scheduler/schedules/${name}`)),
    post("make one for each second", "/scheduler/schedules", schedule("eager", { cronExpression: "* * * * * *" })),
    get("a start", "/scheduler/search/executions?size=1", { until: /"state":"EXECUTED"/ }),
    get("starts of it", "/scheduler/search/executions?size=1&freeText=eager"),
    get("its run", "/workflow/search?query=correlationId%3Dcs&size=1", { until: /"workflowId"/ }),
    del("remove the eager one", "/scheduler/schedules/eager"),
  ],
};
