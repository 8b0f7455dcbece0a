/** The run is another worker's by now. */
export class ClaimLost extends Error {
  constructor(run: string) {
    super(`the claim of run ${run} is lost`)
    this.name = 'ClaimLost'
  }
}
