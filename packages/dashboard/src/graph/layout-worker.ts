// Lays graphs out beside the page, so that a large one does not hold it.

import { type LayoutInput, layOut } from "./layout.ts";

addEventListener("message", ({ data }: MessageEvent<{ id: number; input: LayoutInput }>) => {
  postMessage({ id: data.id, layout: layOut(data.input) });
});
