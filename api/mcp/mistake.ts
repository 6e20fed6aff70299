/** A tool's error for the assistant; the message names the next step. */
export class Mistake extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'Mistake'
  }
}
