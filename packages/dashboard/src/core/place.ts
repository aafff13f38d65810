// The addresses of the pages and of the API. A proxy may serve both below another path, so all of them are relative to the address of this
// script.

/** The file names of the web worker for graph layouts, of the styles, and of the script of an exported run. The build sets them. */
declare const WORKER_FILE: string;
declare const STYLE_FILE: string;
declare const VIEWER_FILE: string;

/** The data inside the file of an exported run; null on a server. */
export const exported: ExportedData | null = readExported();

export interface ExportedData {
  readonly run: string;
  readonly at: number;
  readonly server: string;
  /** Answers of the API, by path. */
  readonly answers: { readonly [path: string]: unknown };
}

const script = exported === null ? import.meta.url : "http://export.invalid/ui/assets/main.js";

/** The path of the pages without a slash at its end, such as `/ui`. */
export const pagesPath = new URL("..", script).pathname.replace(/\/$/, "");

/** The address of the server without a slash at its end. */
export const serverUrl = new URL("../..", script).href.replace(/\/$/, "");

export const apiUrl = `${serverUrl}/api/longshore/v1`;

export const workerUrl = new URL(WORKER_FILE, script).href;

/** The addresses of the files that an exported run must contain. */
export const exportFiles = { script: new URL(VIEWER_FILE, script).href, style: new URL(STYLE_FILE, script).href };

function readExported(): ExportedData | null {
  const element = document.getElementById("longshore-export");
  return element === null ? null : (JSON.parse(element.textContent ?? "null") as ExportedData);
}
