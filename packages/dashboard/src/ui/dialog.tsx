// Dialogs. They use the `dialog` element of the browser, which keeps the focus inside, closes on Escape, and then returns the focus.

import { signal } from "@preact/signals";
import type { ComponentChildren, JSX, RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { ApiError } from "../core/api.ts";
import { Button } from "./parts.tsx";

const opened = signal<(() => JSX.Element) | null>(null);

export function openDialog(content: () => JSX.Element): void {
  opened.value = content;
}

export function closeDialog(): void {
  opened.value = null;
}

export function isDialogOpen(): boolean {
  return opened.value !== null;
}

/**
 * Opens the element before the browser paints, so that the next key is already for it; returns the focus at its end. The function closes this
 * dialog, and no other that was opened since.
 */
export function useModal(element: RefObject<HTMLDialogElement | null>): () => void {
  const content = useRef(opened.peek());
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    const shown = element.current;
    shown?.showModal();
    return () => {
      // While it is open, nothing behind it can have the focus.
      shown?.close();
      before?.focus?.();
    };
  }, []);
  return () => {
    if (opened.peek() === content.current) closeDialog();
  };
}

/** The place of the open dialog. It is used once on the page. */
export function DialogPlace() {
  const Content = opened.value;
  return Content === null ? null : <Content />;
}

interface DialogProps {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly wide?: boolean;
}

export function Dialog({ title, children, wide = false }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const close = useModal(element);
  return (
    <dialog
      ref={element}
      class={wide ? "wide" : ""}
      aria-labelledby="dialog-title"
      onClose={close}
      onCancel={close}
      onClick={(event) => {
        if (event.target === element.current) closeDialog();
      }}
    >
      <div class="dialog-body">
        <div class="dialog-head">
          <h2 id="dialog-title">{title}</h2>
          <Button kind="icon" icon="close" label="Close" onClick={closeDialog} />
        </div>
        {children}
      </div>
    </dialog>
  );
}

interface ConfirmProps {
  readonly title: string;
  readonly text: ComponentChildren;
  readonly verb: string;
  readonly danger?: boolean;
  /** Closes the dialog when it resolves; shows the error when it rejects. */
  readonly act: () => Promise<void>;
}

export function Confirm({ title, text, verb, danger = false, act }: ConfirmProps) {
  return (
    <Dialog title={title}>
      <div class="dialog-text">{text}</div>
      <ActionRow verb={verb} danger={danger} act={act} />
    </Dialog>
  );
}

const problem = signal("");
const isActing = signal(false);

/** The buttons of a dialog, with the error of the last try. */
export function ActionRow({ verb, danger = false, act, blocked }: Pick<ConfirmProps, "verb" | "danger" | "act"> & { blocked?: string }) {
  useEffect(() => {
    problem.value = "";
    isActing.value = false;
  }, []);
  const run = async () => {
    if (isActing.value) return;
    isActing.value = true;
    try {
      await act();
      closeDialog();
    } catch (error) {
      problem.value = error instanceof ApiError || error instanceof SyntaxError ? error.message : String(error);
    } finally {
      isActing.value = false;
    }
  };
  return (
    <>
      {problem.value !== "" && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
      <div class="dialog-actions">
        <Button label="Close" onClick={closeDialog} />
        <Button kind={danger ? "danger" : "main"} label={verb} blocked={blocked} onClick={() => void run()} />
      </div>
    </>
  );
}
