import { DataError, toReason } from '../errors.ts'

/**
 * Runs a Redis command that a job depends on.
 * @throws DataError `storage` if Redis refuses or is unavailable; the job is then retried.
 */
export async function askRedis<T>(what: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (cause) {
    if (cause instanceof DataError) throw cause
    throw new DataError('storage', `Redis, ${what}: ${toReason(cause)}`, { cause })
  }
}
