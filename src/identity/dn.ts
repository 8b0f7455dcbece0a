export interface Rdn {
  readonly type: string
  readonly value: string
}

/** A distinguished name (RFC 4514). */
export class Dn {
  /** Most specific first; a multi-valued RDN has several parts. */
  readonly rdns: readonly (readonly Rdn[])[]

  constructor(rdns: readonly (readonly Rdn[])[]) {
    this.rdns = rdns
  }
}
