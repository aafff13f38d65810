// The script of an exported run: the page of one run, in one file.

import { render } from "preact";
import { applyTheme } from "./core/prefs.ts";
import { followLinks, segments } from "./core/router.ts";
import { RunPage } from "./pages/run.tsx";
import { DialogPlace } from "./ui/dialog.tsx";
import { Frame } from "./ui/frame.tsx";
import { listenToKeys } from "./ui/keys.ts";
import { ToastPlace } from "./ui/toast.tsx";

function Viewer() {
  const [, id = ""] = segments.value;
  return (
    <>
      <Frame>
        <RunPage key={id} id={id} />
      </Frame>
      <DialogPlace />
      <ToastPlace />
    </>
  );
}

applyTheme();
followLinks();
listenToKeys();
const place = document.getElementById("app");
if (place !== null) render(<Viewer />, place);
