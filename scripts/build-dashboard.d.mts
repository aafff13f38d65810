/** Builds the pages of the dashboard into the package. */
export function buildDashboard(): void;
