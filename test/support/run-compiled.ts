import { inject } from 'vitest'
import { runCompiledIn } from '../../tools/children.ts'

runCompiledIn(inject('compiled'))
