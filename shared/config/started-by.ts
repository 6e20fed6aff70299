/** Name of the npm script of this process, which npm puts into the environment. Undefined without npm. */
export const toNpmScript = (): string | undefined => process.env.npm_lifecycle_event

/** Whether npm started this process. npm opens no channel to it. */
export const isStartedByNpm = (): boolean => toNpmScript() !== undefined
