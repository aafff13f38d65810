// Computes layouts in a web worker, so that a large graph does not block the page.

import { type LayoutInput, layOut } from "./layout.ts";

addEventListener("message", ({ data }: MessageEvent<{ id: number; input: LayoutInput }>) => {
  postMessage({ id: data.id, layout: layOut(data.input) });
});
