// The moment that the views show: now, or an earlier one. It is in the address, so that a link leads to it.

import { durationText, timeText } from "../core/format.ts";
import { setQuery } from "../core/router.ts";
import type { RunTimeline } from "../core/shapes.ts";
import { Button } from "../ui/parts.tsx";
import { lengthOf } from "./moment.ts";

const parts = 1_000;

export function Playhead({ timeline, at }: { timeline: RunTimeline; at: number | null }) {
  const length = lengthOf(timeline);
  const place = at === null ? parts : Math.min(parts, Math.round((parts * at) / length));
  return (
    <div class="playhead">
      <label>
        <span class="unseen">Moment</span>
        <input
          type="range"
          min={0}
          max={parts}
          value={place}
          aria-valuetext={at === null ? "now" : durationText(at)}
          onInput={(event) => {
            const value = Number(event.currentTarget.value);
            setQuery({ at: value >= parts ? null : String(Math.round((value * length) / parts)) });
          }}
        />
      </label>
      <span class="num">{at === null ? (timeline.endedAt === null ? "now" : "at its end") : `after ${durationText(at)}`}</span>
      {at !== null && <span class="dim">{timeText(timeline.t0 + at, { withMs: true })}</span>}
      {at !== null && <Button label={timeline.endedAt === null ? "Show now" : "Show its end"} onClick={() => setQuery({ at: null })} />}
    </div>
  );
}
