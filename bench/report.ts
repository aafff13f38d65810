// One shape for every benchmark's answer: rows for the reader, targets with a verdict, and the deliveries that were checked.
import os from "node:os";
import type { Machine } from "./environment.ts";
import type { ClientName } from "./http-connection.ts";

export type Cell = string | number;

export interface Table {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
}

export interface Target {
  readonly what: string;
  readonly value: number;
  /** "at least" for a speed, "at most" for a cost. */
  readonly wanted: "at least" | "at most";
  readonly bound: number;
  readonly aim?: number;
  /** The value divided by the bound; "x" when absent. */
  readonly unit?: string;
}

export interface Report {
  readonly tables: readonly Table[];
  readonly targets: readonly Target[];
  /** A task of ours that was lost, repeated or answered wrongly. Any entry makes the command fail. */
  readonly violations: readonly string[];
  /** How many tasks were counted, on every side. */
  readonly checked: number;
  /** The figures of each round, for --json. */
  readonly rounds: unknown;
}

export interface Options {
  readonly rounds: number;
  readonly quick: boolean;
  /** Who makes the requests of the workflow-graph benchmark. */
  readonly client: ClientName;
  /** The one part that is wanted, of a benchmark that has several. */
  readonly only?: string;
}

export function met(target: Target): boolean {
  return target.wanted === "at least" ? target.value >= target.bound : target.value <= target.bound;
}

export function printReport(name: string, machine: Machine, options: Options, report: Report): void {
  const load = (os.loadavg()[0] ?? 0).toFixed(1);
  const lines = [
    `${name}: ${options.rounds} rounds${options.quick ? ", quick (figures are for trying the benchmark out only)" : ""}`,
    `${machine.date} UTC, ${machine.cores} x ${machine.cpu}, ${machine.memoryGib} GiB, ${machine.kernel}, Node ${machine.node}, load ${machine.loadBefore} before and ${load} after`,
  ];
  for (const table of report.tables) lines.push("", table.title, ...format(table));
  if (report.targets.length > 0) lines.push("", ...report.targets.map(formatTarget));
  if (report.violations.length > 0) lines.push("", `NOT EXACT: ${report.violations.join("; ")}`);
  else if (report.checked > 0)
    lines.push("", `${report.checked.toLocaleString("en-US")} tasks measured; each of ours was delivered exactly once.`);
  process.stdout.write(`${lines.join("\n")}\n`);
}

function formatTarget(target: Target): string {
  const { unit = "x" } = target;
  const aim = target.aim === undefined ? "" : `, aim ${target.aim}${unit}`;
  return `${met(target) ? "met   " : "MISSED"} ${target.what}: ${target.value.toFixed(2)}${unit} (${target.wanted} ${target.bound}${unit}${aim})`;
}

function format(table: Table): string[] {
  const rows = [table.columns, ...table.rows.map((row) => row.map(formatCell))];
  const widths = table.columns.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  return rows.map((row) =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))).join("  "),
  );
}

/** More than three figures would be noise on a shared machine. */
export function formatCell(cell: Cell): string {
  if (typeof cell === "string") return cell;
  if (!Number.isFinite(cell)) return "-";
  if (Math.abs(cell) >= 100) return Math.round(cell).toLocaleString("en-US");
  return cell.toPrecision(3).replace(/\.0+$/, "");
}
