/** Whether npm started this process. npm says so in the environment of what it runs, and has no channel to it. */
export const isStartedByNpm = (): boolean => process.env.npm_lifecycle_event !== undefined
