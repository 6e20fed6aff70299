/** Why a tool has nothing to tell, in words that say what to ask for instead. */
export class Mistake extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'Mistake'
  }
}
