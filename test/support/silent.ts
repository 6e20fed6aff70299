import { createLog } from '../../shared/telemetry/log.ts'

export const silent = createLog('test', 'silent')
