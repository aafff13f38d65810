// Saves a run as one HTML file: says its size first, and takes out what must not leave the company.

import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { bytesText, plural } from "../core/format.ts";
import { useResource } from "../core/resource.ts";
import type { Run } from "../core/shapes.ts";
import { ActionRow, Dialog, openDialog } from "../ui/dialog.tsx";
import { Problem } from "../ui/parts.tsx";
import { exportFile, readExport, saveExport } from "./export.ts";
import { namesDefault } from "./redact.ts";

export function askExport(run: Run): void {
  openDialog(() => <ExportDialog run={run} />);
}

function ExportDialog({ run }: { run: Run }) {
  const names = useSignal(namesDefault);
  const read = useResource(`export ${run.id}`, () => readExport(run));
  const whole = read.data.value;
  const file = useMemo(() => (whole === undefined ? undefined : exportFile(whole, names.value)), [whole, names.value]);
  return (
    <Dialog title="Export this run">
      <p class="dialog-text">
        One HTML file with its graph, steps, data and log. It opens without a server. Give it only to those who may see what it holds.
      </p>
      <label class="field">
        Leave out values under these names or paths, and wherever they are repeated
        <textarea
          rows={3}
          spellcheck={false}
          value={names.value}
          onInput={(event) => {
            names.value = event.currentTarget.value;
          }}
        />
      </label>
      <Problem error={read.error.value} />
      <p role="status">
        {file === undefined
          ? "Reading the run…"
          : `The file has ${bytesText(new Blob([file.html]).size)}. ${file.leftOut === 0 ? "No value is left out." : `${plural(file.leftOut, "value")} left out.`}`}
      </p>
      <ActionRow
        verb="Save the file"
        act={async () => {
          if (whole === undefined || file === undefined) throw new SyntaxError("The run is still being read.");
          saveExport(whole, file.html);
        }}
      />
    </Dialog>
  );
}
