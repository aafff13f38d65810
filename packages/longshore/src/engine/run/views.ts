// A protocol's views of definitions. A view is made from a definition and its plan, and has what the protocol's replies about runs need.
// Views are cached, because most requests are about runs of a few definitions.

import { DefinitionCache } from "./definition-cache.ts";
import type { Definition } from "./dialect.ts";
import type { Plan } from "./plan.ts";

export class DefinitionViews<View> {
  readonly #plan: (definition: Definition) => Plan;
  readonly #viewOf: (definition: Definition, plan: Plan) => View;
  readonly #views = new DefinitionCache<View>();

  constructor(plan: (definition: Definition) => Plan, viewOf: (definition: Definition, plan: Plan) => View) {
    this.#plan = plan;
    this.#viewOf = viewOf;
  }

  of(definition: Definition): View {
    const known = this.#views.get(definition.id);
    if (known !== undefined) return known;
    return this.#views.set(definition.id, this.#viewOf(definition, this.#plan(definition)), definition);
  }
}
