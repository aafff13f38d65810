// One handler for `longshore work`, which neither Stepflow nor Conductor knows.
import { task } from "longshore";

export const tasks = [task("letters", ({ text }) => ({ letters: text.length }))];
