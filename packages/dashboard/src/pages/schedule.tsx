// One schedule: its rules, its next times in the chosen zone and in UTC, and its last ticks.

import { call } from "../core/api.ts";
import { durationText, timeText } from "../core/format.ts";
import { useApi } from "../core/resource.ts";
import { go, href } from "../core/router.ts";
import type { WholeSchedule } from "../core/shapes.ts";
import { askSchedule } from "../run/schedule-dialog.tsx";
import { Confirm, openDialog } from "../ui/dialog.tsx";
import { Json } from "../ui/json.tsx";
import { Button, Empty, Facts, PageHead, Problem, Time } from "../ui/parts.tsx";
import { State } from "../ui/states.tsx";
import { say } from "../ui/toast.tsx";
import { Card } from "./overview.tsx";
import { rhythmOf } from "./schedules.tsx";

const overlaps: Readonly<Record<WholeSchedule["overlap"], string>> = {
  skip: "skip a tick while a run is open",
  queue: "wait until the open run has ended",
  "cancel-previous": "cancel the open run",
  allow: "start another run beside it",
};

export function SchedulePage({ name }: { name: string }) {
  const path = `/schedules/${encodeURIComponent(name)}`;
  const read = useApi<WholeSchedule>(path, { everyMs: 3_000 });
  const row = read.data.value;
  if (read.error.value?.status === 404) return <Empty title={`There is no schedule ${name}.`} />;
  if (row === undefined) return <Problem error={read.error.value} />;
  const order = async (verb: string, said: string) => {
    try {
      await call(`${path}/${verb}`, { method: "POST", body: {} });
      say(said);
    } catch (error) {
      say((error as Error).message);
    }
    read.refresh();
  };
  const fromFile = row.source === null ? undefined : `Its rules are in the definition file of ${row.source}. Change them there.`;
  return (
    <div class="list-page scroll">
      <PageHead
        title={name}
        note={
          <>
            Starts <a href={href(["workflows", row.workflow])}>{row.workflow}</a>, <code>{rhythmOf(row)}</code>
          </>
        }
      >
        {row.paused === null ? (
          <Button icon="pause" label="Pause" needs="schedule.steer" onClick={() => void order("pause", "The schedule is paused.")} />
        ) : (
          <Button icon="play" label="Resume" needs="schedule.steer" onClick={() => void order("resume", "The schedule continues.")} />
        )}
        <Button label="Run now" needs="schedule.steer" onClick={() => void order("run", "A run was started.")} />
        <Button label="Edit" needs="schedule.write" blocked={fromFile} onClick={() => askSchedule(row)} />
        <Button
          kind="danger"
          label="Remove"
          needs="schedule.write"
          onClick={() =>
            openDialog(() => (
              <Confirm
                title={`Remove the schedule ${name}?`}
                text={<p>It starts no more runs. Runs that it has started continue.</p>}
                verb="Remove"
                danger
                act={async () => {
                  await call(path, { method: "DELETE" });
                  say("The schedule is removed.");
                  go(href(["schedules"]));
                }}
              />
            ))
          }
        />
      </PageHead>
      <Problem error={read.error.value} />
      {row.paused !== null && (
        <p class="banner tone-warn">
          <span>Paused: {row.paused === "" ? "without a reason" : row.paused}. It starts nothing until it is resumed.</span>
        </p>
      )}
      <div class="columns">
        <div class="column">
          <Card title="Next ticks">
            {row.upcoming.length === 0 && (
              <p class="dim">{row.paused === null ? "There is no further tick." : "None while it is paused."}</p>
            )}
            <ol class="plain ticks-list">
              {row.upcoming.map(({ tick }) => (
                <li key={tick}>
                  <span class="num">{timeText(tick)}</span>
                  <span class="num dim">{new Date(tick).toISOString().slice(0, 16).replace("T", " ")} UTC</span>
                  <span class="dim">
                    <Time at={tick} />
                  </span>
                </li>
              ))}
            </ol>
          </Card>
          <Card title="Rules">
            <Facts
              rows={[
                ["While a run is open", overlaps[row.overlap]],
                ["After a downtime", row.catchUp === "all" ? "start every missed tick" : "start the last missed tick"],
                ["If late by at most", durationText(row.catchUpWindow)],
                row.jitter === 0 ? null : ["Delayed by up to", durationText(row.jitter)],
                row.backfill === null ? null : ["Backfill", `${row.backfill.started} of ${row.backfill.total} started`],
                row.queued.length === 0 ? null : ["Ticks that wait", String(row.queued.length)],
              ]}
            />
            <Json name="Input" value={row.input} />
          </Card>
        </div>
        <div class="column">
          <Card title="Last ticks">
            {row.history.length === 0 && <p class="dim">It has not ticked yet.</p>}
            <ul class="run-lines">
              {row.history.map((tick) => (
                <li key={`${tick.at} ${tick.decidedAt}`}>
                  <State state={tick.outcome} />
                  {tick.runId === null ? (
                    <span class="num">{timeText(tick.at)}</span>
                  ) : (
                    <a href={href(["runs", tick.runId])}>{timeText(tick.at)}</a>
                  )}
                  <span class="dim clip">
                    {tick.by === undefined ? "" : `${tick.by === "hand" ? "by hand" : "backfill"} `}
                    {tick.reason ?? ""}
                    {tick.count === undefined ? "" : `${tick.count} ticks`}
                  </span>
                </li>
              ))}
            </ul>
          </Card>
        </div>
      </div>
    </div>
  );
}
