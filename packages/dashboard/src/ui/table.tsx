// A list of any length with rows of one height: only the rows in view are in the document. It is a grid for screen readers, and j, k, the
// arrows, Enter and x work in it.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

export interface Column<Row> {
  readonly name: string;
  /** A grid track, such as `120px` or `minmax(120px, 2fr)`. */
  readonly width: string;
  /** Hidden when the table is narrow: the last of these columns first. */
  readonly minor?: boolean;
  readonly numeric?: boolean;
  readonly cell: (row: Row) => ComponentChildren;
}

export interface TableProps<Row> {
  readonly label: string;
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly keyOf: (row: Row) => string;
  readonly onOpen?: (row: Row) => void;
  readonly isSelected?: (row: Row) => boolean;
  /** `isRange`: the rows between the last chosen one and this one, too. */
  readonly onSelect?: (row: Row, isRange: boolean) => void;
  /** Called when the last rows come into view. */
  readonly onEnd?: () => void;
  readonly rowHeight?: number;
  /** The number of all rows, when the server has more rows than this list. */
  readonly total?: number;
  /** A row of a narrow page, in two lines. Absent: the main cells. */
  readonly narrow?: (row: Row) => ComponentChildren;
  readonly active?: number;
  readonly onActive?: (at: number) => void;
}

const rowHeightDefault = 30;
const overscan = 6;
/** Below this width, a row shows its main cells in two lines. */
const narrowPx = 640;

/** The room between two cells. */
const gapPx = 12;

/** The columns for which there is room. The last minor columns are left out first, so that none is cut off. */
function fitting<Row>(columns: readonly Column<Row>[], px: number): readonly Column<Row>[] {
  const least = ({ width }: Column<Row>) => Number(/(\d+)px/.exec(width)?.[1] ?? 0) + gapPx;
  const shown = [...columns];
  let sum = shown.reduce((total, column) => total + least(column), 2 * gapPx);
  for (let at = shown.length - 1; at >= 0 && sum > px; at--) {
    const column = shown[at];
    if (column?.minor !== true) continue;
    sum -= least(column);
    shown.splice(at, 1);
  }
  return shown;
}

export function Table<Row>(props: TableProps<Row>) {
  const { label, rows, columns, keyOf, onOpen, isSelected, onSelect, onEnd, total } = props;
  const box = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const size = useSignal({ height: 600, width: 1_000 });
  const own = useSignal(-1);
  const active = props.active ?? own.value;
  const isNarrow = size.value.width < narrowPx;
  const rowHeight = isNarrow ? 52 : (props.rowHeight ?? rowHeightDefault);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => {
      const { clientHeight: height, clientWidth: width } = element;
      if (height !== size.value.height || width !== size.value.width) size.value = { height, width };
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [size]);
  const from = Math.max(0, Math.floor(top.value / rowHeight) - overscan);
  const to = Math.min(rows.length, Math.ceil((top.value + size.value.height) / rowHeight) + overscan);
  useEffect(() => {
    if (to >= rows.length - overscan) onEnd?.();
  }, [to, rows.length]);
  const { narrow } = props;
  const shown: readonly Column<Row>[] = !isNarrow
    ? fitting(columns, size.value.width)
    : narrow === undefined
      ? columns.filter(({ minor }) => !minor)
      : [{ name: label, width: "minmax(0, 1fr)", cell: narrow }];
  const tracks = shown.map(({ width }) => width).join(" ");
  const move = (next: number) => {
    const at = Math.max(0, Math.min(rows.length - 1, next));
    if (props.onActive) props.onActive(at);
    else own.value = at;
    const element = box.current;
    if (element === null) return;
    if (at * rowHeight < element.scrollTop) element.scrollTop = at * rowHeight;
    else if ((at + 2) * rowHeight > element.scrollTop + element.clientHeight)
      element.scrollTop = (at + 2) * rowHeight - element.clientHeight;
  };
  const act = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const row = rows[active];
    const page = Math.max(1, Math.floor(size.value.height / rowHeight) - 2);
    const moves: Readonly<Record<string, number>> = {
      ...{ ArrowDown: active + 1, j: active + 1, ArrowUp: active - 1, k: active - 1 },
      ...{ Home: 0, End: rows.length - 1, PageDown: active + page, PageUp: active - page },
    };
    const next = moves[event.key];
    if (next !== undefined) move(next);
    else if (event.key === "Enter" && row !== undefined && event.target === box.current) onOpen?.(row);
    else if ((event.key === "x" || event.key === "X") && row !== undefined && onSelect !== undefined) onSelect(row, event.shiftKey);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="table" data-narrow={isNarrow}>
      <div
        ref={box}
        class="table-box"
        role="grid"
        aria-label={label}
        aria-rowcount={(total ?? rows.length) + 1}
        aria-colcount={shown.length}
        aria-activedescendant={active >= from && active < to ? `row-${active}` : undefined}
        tabIndex={0}
        data-list
        onKeyDown={act}
        onScroll={(event) => {
          top.value = event.currentTarget.scrollTop;
        }}
      >
        <div role="row" class="table-head" aria-rowindex={1} style={{ gridTemplateColumns: tracks }}>
          {shown.map(({ name, numeric }) => (
            <div key={name} role="columnheader" class={numeric ? "numeric" : ""}>
              {name}
            </div>
          ))}
        </div>
        <div role="rowgroup" class="table-rows" style={{ height: `${rows.length * rowHeight}px` }}>
          {rows.slice(from, to).map((row, index) => {
            const at = from + index;
            return (
              <div
                key={keyOf(row)}
                id={`row-${at}`}
                role="row"
                class="table-row"
                aria-rowindex={at + 2}
                aria-selected={onSelect === undefined ? at === active : (isSelected?.(row) ?? false)}
                data-active={at === active}
                data-marked={isSelected?.(row) ?? false}
                style={{ gridTemplateColumns: tracks, height: `${rowHeight}px`, transform: `translateY(${at * rowHeight}px)` }}
                onClick={(event) => {
                  if ((event.target as Element).closest("a,button,input") !== null) return;
                  move(at);
                  if (event.shiftKey && onSelect !== undefined) return onSelect(row, true);
                  if (getSelection()?.isCollapsed !== false) onOpen?.(row);
                }}
              >
                {shown.map(({ name, cell, numeric }) => (
                  <div key={name} role="gridcell" class={numeric ? "numeric" : ""}>
                    {cell(row)}
                  </div>
                ))}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
