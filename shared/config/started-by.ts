/** The script of npm that this process is, by its name; npm says so in the environment of what it runs. Undefined without npm. */
export const toNpmScript = (): string | undefined => process.env.npm_lifecycle_event

/** Whether npm started this process. npm has no channel to it. */
export const isStartedByNpm = (): boolean => toNpmScript() !== undefined
