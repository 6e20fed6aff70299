import { DataError, toReason } from '../errors.ts'

/**
 * Asks Redis for something that a job cannot do without.
 * @throws DataError `storage` when it refuses or is away; the job is then tried again.
 */
export async function askRedis<T>(what: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (cause) {
    if (cause instanceof DataError) throw cause
    throw new DataError('storage', `Redis, ${what}: ${toReason(cause)}`, { cause })
  }
}
