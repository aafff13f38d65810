// This tab, this token, this server.

import { useEffect } from "preact/hooks";
import { signOut } from "../core/api.ts";
import { bytesText, countText, durationText } from "../core/format.ts";
import { apiUrl, serverUrl } from "../core/place.ts";
import { singleKeys, theme, themes, zone } from "../core/prefs.ts";
import { href } from "../core/router.ts";
import { info, readInfo, whoami } from "../core/session.ts";
import type { Info } from "../core/shapes.ts";
import { Icon } from "../ui/icons.tsx";
import { Button, Facts, PageHead, Time } from "../ui/parts.tsx";
import { RetentionCard, TablesCard, TokensCard } from "./data-cards.tsx";
import { Card } from "./overview.tsx";

export function SettingsPage() {
  useEffect(() => {
    void readInfo().catch(() => {});
  }, []);
  return (
    <div class="list-page scroll">
      <PageHead title="Settings" />
      <div class="columns">
        <div class="column">
          <Card title="This browser">
            <Choice label="Theme" value={theme} options={themes.map((name) => [name, name])} />
            <Choice
              label="Times"
              value={zone}
              options={[
                ["local", "in the zone of this computer"],
                ["utc", "in UTC"],
              ]}
            />
            <Choice
              label="Single keys"
              value={singleKeys}
              options={[
                ["on", "on; ? shows them"],
                ["off", "off"],
              ]}
            />
          </Card>
          <TokenCard />
          <TokensCard />
          <Card title="Audit">
            <p>
              Who cancelled, paused, retried or changed what, and when: <a href={href(["settings", "audit"])}>the audit</a>.
            </p>
          </Card>
          <Card title="More">
            <ul class="plain">
              <li>
                <a href={`${apiUrl}/openapi.json`} target="_blank" rel="noreferrer">
                  The HTTP API, described
                </a>
              </li>
              <li>
                <a href={`${serverUrl}/metrics`} target="_blank" rel="noreferrer">
                  Figures for Prometheus
                </a>
              </li>
            </ul>
            <p class="dim">These pages contain Preact and its signals (MIT).</p>
          </Card>
        </div>
        <div class="column">
          {info.value !== null && <ServerCard info={info.value} />}
          {info.value !== null && <RetentionCard keptMs={info.value.kept.runs.ageMs} />}
          <TablesCard />
        </div>
      </div>
    </div>
  );
}

interface ChoiceProps<Value extends string> {
  readonly label: string;
  readonly value: { value: Value };
  readonly options: readonly (readonly [value: Value, text: string])[];
}

function Choice<Value extends string>({ label, value, options }: ChoiceProps<Value>) {
  return (
    <label class="field">
      {label}
      <select
        value={value.value}
        onChange={(event) => {
          value.value = event.currentTarget.value as Value;
        }}
      >
        {options.map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

function TokenCard() {
  const me = whoami.value;
  if (me === null) return null;
  const all = Object.entries(me.actions);
  return (
    <Card title="Your token">
      {!me.tokensRequired && <p>This server asks for no token: every caller may do everything.</p>}
      {me.tokensRequired && (
        <>
          <Facts
            rows={[
              ["Name", me.name ?? "without a name"],
              ["Scopes", me.scopes.join(", ")],
            ]}
          />
          <Button label="Sign out" onClick={signOut} />
        </>
      )}
      <details>
        <summary>What it allows</summary>
        <ul class="plain rights">
          {all.map(([name, { may, what, needs }]) => (
            <li key={name} class={may ? "tone-good" : "tone-calm"}>
              <Icon name={may ? "check" : "cross"} />
              <span>
                {what}
                {may ? "" : ` (needs ${needs})`}
              </span>
            </li>
          ))}
        </ul>
      </details>
    </Card>
  );
}

function kept({ ageMs, count }: Info["kept"]["runs"]): string {
  const age = ageMs === null ? "" : `for ${durationText(ageMs)}`;
  const most = count === null ? "" : `at most ${countText(count)}`;
  return [age, most].filter(Boolean).join(", ") || "without a limit";
}

function ServerCard({ info: { version, node, host, pid, startedAt, store, stored, kept: keep, counts } }: { info: Info }) {
  return (
    <Card title="This server">
      <Facts
        rows={[
          ["Version", version],
          ["Host", `${host}, process ${pid}, Node ${node}`],
          ["Started", <Time key="started" at={startedAt} />],
          ["Data", store.problem === null ? `${store.name}, can be written` : `${store.name}: ${store.problem}`],
          ...store.parts.map(({ part, bytes }) => [`Size of ${part}`, bytesText(bytes)] as const),
          ["Runs", `${countText(counts.openRuns)} open, ${countText(counts.endedRuns)} ended`],
          ["Keeps ended runs", kept(keep.runs)],
          ["Keeps logs", kept(keep.logs)],
          ["Keeps the audit", kept(keep.audit)],
        ]}
      />
      <h3>Stored bytes</h3>
      <ul class="plain meters">
        {stored.map(({ kind, bytes, max, refused }) => (
          <li key={kind}>
            <span>{kind}</span>
            <meter min={0} max={max} high={max * 0.8} value={bytes} aria-label={`${kind}: ${bytesText(bytes)} of ${bytesText(max)}`} />
            <span class="num dim">
              {bytesText(bytes)} of {bytesText(max)}
              {refused === 0 ? "" : `, ${countText(refused)} refused`}
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
