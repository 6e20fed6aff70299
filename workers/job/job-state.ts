/** State of a job between runs. `set` only buffers a value; the runner stores it after the run's rows are stored. */
export interface JobState {
  get(name: string): Promise<string | undefined>
  set(name: string, value: string): void
  /**
   * Stores a value immediately, even if the run fails later. For paid data that must not be bought again. The value
   * must be valid without the run's rows.
   */
  save(name: string, value: string): Promise<void>
  /** Reports a value that `recall` could not read. */
  readonly onUnreadable?: ((name: string, reason: string) => void) | undefined
}
