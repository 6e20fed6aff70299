import { createLog } from '../../shared/log.ts'

/** A log that says nothing. */
export const silent = createLog('test', 'silent')
