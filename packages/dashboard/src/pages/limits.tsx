// The limits that tasks of a lane wait for: how far each is used, when it has room again, and a change of it.

import { useSignal } from "@preact/signals";
import { call } from "../core/api.ts";
import { countText, durationText, now } from "../core/format.ts";
import { touchesTasks } from "../core/live.ts";
import { useApi } from "../core/resource.ts";
import type { Limit, Page } from "../core/shapes.ts";
import { ActionRow, Dialog, openDialog } from "../ui/dialog.tsx";
import { Button, Problem, Time } from "../ui/parts.tsx";

export function LaneLimits({ keys }: { keys: readonly string[] }) {
  const list = useApi<Page<Limit>>("/limits", { on: touchesTasks, everyMs: 3_000 });
  const limits = (list.data.value?.items ?? []).filter(({ key, change }) => keys.includes(key) || change !== null);
  if (limits.length === 0) return <Problem error={list.error.value} />;
  return (
    <>
      <h3>Limits</h3>
      <ul class="plain limits">
        {limits.map((limit) => (
          <li key={limit.key}>
            <LimitLine limit={limit} />
            <Button
              label="Change"
              needs="queue.steer"
              onClick={() => openDialog(() => <ChangeLimit limit={limit} done={list.refresh} />)}
            />
          </li>
        ))}
      </ul>
    </>
  );
}

function LimitLine({ limit: { key, held, max, rate, waiting, freeAt, change } }: { limit: Limit }) {
  const used = max === null ? `${countText(held)} held` : `${countText(held)} of ${countText(max)} held`;
  const rated = rate === null ? "" : `, ${countText(rate.used)} of ${countText(rate.count)} in ${durationText(rate.windowMs)}`;
  const free = freeAt === null ? "" : `, room in ${durationText(Math.max(0, freeAt - now.value))}`;
  return (
    <span>
      <strong>{key}</strong> {used}
      {rated}
      {free}
      {waiting > 0 && <span class="tone-warn">, {countText(waiting)} wait</span>}
      {change !== null && (
        <span class="dim">
          , changed <Time at={change.at} />
          {change.by === null ? "" : ` by ${change.by}`}
          {change.reason === null ? "" : `: ${change.reason}`}
        </span>
      )}
    </span>
  );
}

function ChangeLimit({ limit, done }: { limit: Limit; done: () => void }) {
  const held = useSignal(limit.max === null ? "" : String(limit.max));
  const reason = useSignal("");
  const path = `/limits/${encodeURIComponent(limit.key)}`;
  return (
    <Dialog title={`Change the limit ${limit.key}?`}>
      <p>It applies to all tasks with this key at once, and stays until it is taken back. What workers hold goes on.</p>
      <label class="field">
        Held at the same time (empty for any number)
        <input
          type="number"
          min={0}
          value={held.value}
          onInput={(event) => {
            held.value = event.currentTarget.value;
          }}
        />
      </label>
      <label class="field">
        Reason
        <input
          value={reason.value}
          onInput={(event) => {
            reason.value = event.currentTarget.value;
          }}
        />
      </label>
      {limit.change !== null && (
        <Button label="Take the change back" needs="queue.steer" onClick={() => void call(path, { method: "DELETE" }).then(done)} />
      )}
      <ActionRow
        verb="Change the limit"
        act={async () => {
          const why = reason.value.trim();
          const body = { held: held.value === "" ? null : Number(held.value), ...(why === "" ? {} : { reason: why }) };
          await call(path, { method: "PUT", body });
          done();
        }}
      />
    </Dialog>
  );
}
