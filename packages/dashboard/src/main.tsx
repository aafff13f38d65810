// The start of the pages.

import { effect } from "@preact/signals";
import { render } from "preact";
import { needsToken } from "./core/api.ts";
import { tickClock } from "./core/format.ts";
import { need, startLive } from "./core/live.ts";
import { applyTheme } from "./core/prefs.ts";
import { followLinks, go, href, segments } from "./core/router.ts";
import { openSession } from "./core/session.ts";
import { navigation } from "./pages/navigation.ts";
import { loadPages, PageOf } from "./pages/pages.tsx";
import { DialogPlace, isDialogOpen, openDialog } from "./ui/dialog.tsx";
import { Frame } from "./ui/frame.tsx";
import { Help } from "./ui/help.tsx";
import { type Key, listenToKeys, useKeys } from "./ui/keys.ts";
import { openPalette } from "./ui/palette.tsx";
import { SignIn } from "./ui/sign-in.tsx";
import { ToastPlace } from "./ui/toast.tsx";

const keysOfAllPages: readonly Key[] = [
  ...navigation.map(({ path, title, key }): Key => ({ keys: `g ${key}`, what: title, act: () => go(href(path === "" ? [] : [path])) })),
  { keys: "?", what: "Show the keys", act: () => openDialog(() => <Help />) },
];

function App() {
  useKeys(keysOfAllPages);
  if (needsToken.value) return <SignIn />;
  return (
    <>
      <Frame>
        <PageOf key={segments.value.slice(0, 2).join("/")} segments={segments.value} />
      </Frame>
      <DialogPlace />
      <ToastPlace />
    </>
  );
}

addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "k" || !(event.metaKey || event.ctrlKey) || event.shiftKey || event.altKey) return;
  event.preventDefault();
  if (!isDialogOpen() && !needsToken.value) openPalette();
});

applyTheme();
followLinks();
listenToKeys();
tickClock();
void openSession().catch(() => {});
startLive();
// The pages of runs show each change at once. The other pages show the changes of each second.
effect(() => {
  need.value = segments.value[0] === "runs" || segments.value[0] === "compare" ? "changes" : "ticks";
});
const place = document.getElementById("app");
if (place !== null) render(<App />, place);
// When the browser has the rest of the code, a link shows its page at once, even while the server does not answer.
addEventListener("load", () => setTimeout(() => void loadPages(), 1_000));
