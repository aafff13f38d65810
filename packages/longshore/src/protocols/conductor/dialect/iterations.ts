/** Iterations of a loop in a definition that no run has made longer. */
export const iterationsAtFirst = 2;
