// One handler for `longshore work`: neither Stepflow nor Conductor knows that it is there.
import { task } from "longshore";

export const tasks = [task("letters", ({ text }) => ({ letters: text.length }))];
