// Asks for a token where the server requires one.

import { useSignal } from "@preact/signals";
import { signIn, tokenProblem } from "../core/api.ts";
import { serverUrl } from "../core/place.ts";
import { Button } from "./parts.tsx";

export function SignIn() {
  const given = useSignal("");
  return (
    <main class="sign-in" id="main">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (given.value.trim() !== "") signIn(given.value);
        }}
      >
        <h1>Longshore</h1>
        <p>
          The server at <code>{new URL(serverUrl).host}</code> asks for a token.
        </p>
        <label for="token">Token</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          spellcheck={false}
          aria-describedby="token-note"
          aria-invalid={tokenProblem.value !== ""}
          value={given.value}
          onInput={(event) => {
            given.value = event.currentTarget.value;
          }}
        />
        {tokenProblem.value !== "" && (
          <p class="problem" role="alert">
            {tokenProblem.value}
          </p>
        )}
        <p id="token-note" class="dim">
          A token with the scope <code>read</code> shows everything; <code>operator</code> also starts, cancels and retries. This tab keeps
          it until you close it.
        </p>
        <Button kind="main" type="submit" label="Sign in" onClick={() => {}} />
      </form>
    </main>
  );
}
