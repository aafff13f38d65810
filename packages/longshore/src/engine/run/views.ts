// A protocol's views of definitions, created once for each: most requests are about runs of a few definitions.

import type { Definition } from "./dialect.ts";
import type { Plan } from "./plan.ts";

/** Maximum number of cached views; each is about as large as its definition. */
const viewsMax = 1_000;

export class DefinitionViews<View> {
  readonly #plan: (definition: Definition) => Plan;
  readonly #viewOf: (definition: Definition, plan: Plan) => View;
  readonly #views = new Map<string, View>();

  constructor(plan: (definition: Definition) => Plan, viewOf: (definition: Definition, plan: Plan) => View) {
    this.#plan = plan;
    this.#viewOf = viewOf;
  }

  of(definition: Definition): View {
    const known = this.#views.get(definition.id);
    if (known !== undefined) return known;
    const view = this.#viewOf(definition, this.#plan(definition));
    if (this.#views.size >= viewsMax) this.#views.delete(this.#views.keys().next().value as string);
    this.#views.set(definition.id, view);
    return view;
  }
}
