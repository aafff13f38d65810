// Makes a schedule or changes its rules. Its next times are shown before it is stored, as the server computes them.

import { useSignal } from "@preact/signals";
import { call, query } from "../core/api.ts";
import { timeText } from "../core/format.ts";
import { useResource } from "../core/resource.ts";
import { go, href } from "../core/router.ts";
import type { Schedule } from "../core/shapes.ts";
import { ActionRow, Dialog, openDialog } from "../ui/dialog.tsx";
import { say } from "../ui/toast.tsx";

export function askSchedule(row?: Schedule): void {
  openDialog(() => <ScheduleDialog row={row} />);
}

type Times = { readonly times: readonly number[] };

function ScheduleDialog({ row }: { row: Schedule | undefined }) {
  const name = useSignal(row?.name ?? "");
  const workflow = useSignal(row?.workflow ?? "");
  const kind = useSignal<"cron" | "every">(row?.every === undefined ? "cron" : "every");
  const cron = useSignal(row?.cron ?? "0 3 * * *");
  const timezone = useSignal(row?.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone);
  const every = useSignal(row?.every === undefined ? "1h" : String(row.every));
  const overlap = useSignal<string>(row?.overlap ?? "skip");
  const input = useSignal(JSON.stringify(row?.input ?? null, null, 2));
  const rules = kind.value === "cron" ? { cron: cron.value, timezone: timezone.value } : { every: every.value };
  const times = useResource<Times>(JSON.stringify(rules), (gone) =>
    call<Times>(`/schedule-times${query({ ...rules, limit: 3 })}`, { signal: gone }),
  );
  const text = (label: string, value: { value: string }, isFixed = false) => (
    <label class="field">
      {label}
      <input
        value={value.value}
        readOnly={isFixed}
        onInput={(event) => {
          value.value = event.currentTarget.value;
        }}
      />
    </label>
  );
  return (
    <Dialog title={row === undefined ? "New schedule" : `Edit ${row.name}`}>
      {text("Name", name, row !== undefined)}
      {text("Workflow", workflow)}
      <label class="field">
        When
        <select
          value={kind.value}
          onChange={(event) => {
            kind.value = event.currentTarget.value as "cron" | "every";
          }}
        >
          <option value="cron">by a cron expression</option>
          <option value="every">at an interval</option>
        </select>
      </label>
      {kind.value === "cron" ? text("Cron: minute, hour, day, month, day of the week", cron) : text("Interval: 30s, 5m, 2h, 1d", every)}
      {kind.value === "cron" && text("Time zone", timezone)}
      <p class="note" role="status">
        {times.error.value !== null
          ? times.error.value.message
          : times.data.value === undefined
            ? ""
            : `Next: ${times.data.value.times.map((at) => timeText(at)).join(", ")}`}
      </p>
      <label class="field">
        While a run is open
        <select
          value={overlap.value}
          onChange={(event) => {
            overlap.value = event.currentTarget.value;
          }}
        >
          <option value="skip">skip the tick</option>
          <option value="queue">wait for its end</option>
          <option value="cancel-previous">cancel it</option>
          <option value="allow">start another beside it</option>
        </select>
      </label>
      <label class="field">
        Input, as JSON
        <textarea
          rows={4}
          spellcheck={false}
          value={input.value}
          onInput={(event) => {
            input.value = event.currentTarget.value;
          }}
        />
      </label>
      <ActionRow
        verb="Store"
        act={async () => {
          const { catchUp, catchUpWindow, jitter, queueMax, tickField } = row ?? ({} as Partial<Schedule>);
          const body = {
            workflow: workflow.value,
            input: JSON.parse(input.value),
            ...rules,
            overlap: overlap.value,
            catchUp,
            catchUpWindow,
            jitter,
            queueMax,
            tickField,
          };
          await call(`/schedules/${encodeURIComponent(name.value.trim())}`, { method: "PUT", body });
          say("The schedule is stored.");
          go(href(["schedules", name.value.trim()]));
        }}
      />
    </Dialog>
  );
}
