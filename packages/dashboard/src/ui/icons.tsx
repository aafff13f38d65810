// The pictures of the pages: 16 by 16, one stroke, in the colour of the text around them.

const paths = {
  overview: "M2.5 9.5 8 3.5l5.5 6M4 8.5v5h3v-3h2v3h3v-5",
  runs: "M3 4h10M3 8h10M3 12h6",
  workflows: "M3 3h4v3H3zM9 10h4v3H9zM5 6v5.5h4",
  queues: "M2.5 5h11M2.5 8h11M2.5 11h11M5 3.5v9",
  workers: "M4 6.5h8v6H4zM6 6.5v-3h4v3M6.5 9.5h.01M9.5 9.5h.01",
  schedules: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M8 5v3l2 1.5",
  letters: "M2.5 4h11v8h-11zM2.5 4.5 8 9l5.5-4.5",
  streams: "M2 6c2-2 4-2 6 0s4 2 6 0M2 10.5c2-2 4-2 6 0s4 2 6 0",
  settings: "M3 5h6M12 5h1M3 11h1M7 11h6M10.5 3.5v3M5.5 9.5v3",
  search: "M7 3a4 4 0 1 0 0 8 4 4 0 0 0 0-8M10 10l3.5 3.5",
  close: "M4 4l8 8M12 4l-8 8",
  copy: "M5.5 5.5h7v7h-7zM3.5 10.5v-7h7",
  check: "M3.5 8.5l3 3 6-7",
  cross: "M4.5 4.5l7 7M11.5 4.5l-7 7",
  stop: "M4.5 4.5h7v7h-7z",
  pause: "M6 4v8M10 4v8",
  play: "M5 3.5v9l7-4.5z",
  clock: "M8 3a5 5 0 1 0 0 10A5 5 0 0 0 8 3M8 5.5V8l1.8 1.2",
  retry: "M12.5 5.5A5 5 0 1 0 13 9M12.8 2.8v3h-3",
  skip: "M4 4l5 4-5 4zM11.5 4v8",
  dot: "M8 5.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5",
  warn: "M8 2.8 14 13H2zM8 6.5v3M8 11.3v.1",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  sun: "M8 5.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5M8 1.5v1.5M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1M3.4 12.6l1-1M11.6 4.4l1-1",
  link: "M6.5 9.5l3-3M7 5l1.5-1.5a2.5 2.5 0 0 1 4 4L11 9M9 11l-1.5 1.5a2.5 2.5 0 0 1-4-4L5 7",
  down: "M4 6l4 4 4-4",
  right: "M6 4l4 4-4 4",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  fit: "M3 6V3h3M10 3h3v3M13 10v3h-3M6 13H3v-3",
  save: "M8 2.5v7M5 7l3 3 3-3M3 12.5h10",
  signal: "M3 8h3l2-4 2 8 1.5-4H14",
  person: "M8 3a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5M3.5 13.5c.5-3 2-4 4.5-4s4 1 4.5 4",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  );
}
