// Which rows of a long list are in view: only these are in the document. All rows have one height.

import { type Signal, useSignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect } from "preact/hooks";

export interface RowsInView {
  /** How far the box is scrolled. */
  readonly top: Signal<number>;
  readonly height: Signal<number>;
  /** The first row that is drawn, and the one after the last. Some rows beyond the view are drawn too. */
  readonly from: number;
  readonly to: number;
}

export function useRowsInView(box: RefObject<HTMLElement | null>, count: number, rowHeight: number, overscan: number): RowsInView {
  const top = useSignal(0);
  const height = useSignal(400);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => {
      height.value = element.clientHeight;
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [height]);
  const from = Math.max(0, Math.floor(top.value / rowHeight) - overscan);
  const to = Math.min(count, Math.ceil((top.value + height.value) / rowHeight) + overscan);
  return { top, height, from, to };
}
