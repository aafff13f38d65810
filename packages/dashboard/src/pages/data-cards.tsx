// The size of the server's data, what retention removes, and the tokens.

import { useSignal } from "@preact/signals";
import { bytesText, countText, plural } from "../core/format.ts";
import { useApi } from "../core/resource.ts";
import type { Pruning, Storage, Tokens } from "../core/shapes.ts";
import { Problem, Time } from "../ui/parts.tsx";
import { Card } from "./overview.tsx";

const dayMs = 86_400_000;

export function TokensCard() {
  const tokens = useApi<Tokens>("/tokens");
  const items = tokens.data.value?.items ?? [];
  if (items.length === 0) return null;
  return (
    <Card title="Tokens">
      <table class="small-table">
        <thead>
          <tr>
            <th>Name</th>
            <th>Scopes</th>
            <th>Last used</th>
          </tr>
        </thead>
        <tbody>
          {items.map(({ name, scopes, usedAt }) => (
            <tr key={name}>
              <td class="strong">{name}</td>
              <td>{scopes.join(", ")}</td>
              <td>{usedAt === null ? "not since the start" : <Time at={usedAt} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

export function TablesCard() {
  const storage = useApi<Storage>("/storage");
  const { tables = [], measuredAt = null } = storage.data.value ?? {};
  const total = tables.reduce((sum, { bytes }) => sum + bytes, 0);
  return (
    <Card title="Disk use by table">
      <Problem error={storage.error.value} />
      {storage.data.value !== undefined && measuredAt === null && <p class="dim">The data is in memory.</p>}
      <ul class="plain meters">
        {tables
          .filter(({ bytes }) => bytes * 200 >= total)
          .map(({ name, bytes }) => (
            <li key={name}>
              <span>{name}</span>
              <meter min={0} max={total} value={bytes} aria-label={`${name}: ${bytesText(bytes)}`} />
              <span class="num dim">{bytesText(bytes)}</span>
            </li>
          ))}
      </ul>
    </Card>
  );
}

/** The number of days that people choose from. */
const choices = [1, 3, 7, 14, 30, 90];

export function RetentionCard({ keptMs }: { keptMs: number | null }) {
  const days = useSignal(keptMs === null ? "" : String(Math.round(keptMs / dayMs)));
  const wanted = Number(days.value);
  const path = days.value === "" ? null : `/retention?keepMs=${wanted * dayMs}`;
  const pruning = useApi<Pruning>(path);
  const found = pruning.data.value;
  const all = [...new Set([...choices, ...(keptMs === null ? [] : [Math.round(keptMs / dayMs)])])].sort((a, b) => a - b);
  return (
    <Card title="Retention">
      <label class="field">
        If ended runs were kept for
        <select
          value={days.value}
          onChange={(event) => {
            days.value = event.currentTarget.value;
          }}
        >
          {keptMs === null && <option value="">ever</option>}
          {all.map((one) => (
            <option key={one} value={String(one)}>
              {plural(one, "day")}
              {keptMs !== null && one === Math.round(keptMs / dayMs) ? " (as now)" : ""}
            </option>
          ))}
        </select>
      </label>
      <Problem error={pruning.error.value} />
      <p role="status">
        {found === undefined ? "" : `The server would remove ${plural(found.runs, "run")} of ${countText(found.of)}.`}{" "}
        <span class="dim">
          Set it with <code>--keep-for {days.value === "" ? "30d" : `${days.value}d`}</code>.
        </span>
      </p>
    </Card>
  );
}
