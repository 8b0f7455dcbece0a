/** The tables of second factors. Times are milliseconds since 1970. */
export interface SecondFactorSchema {
  second_factors: {
    id: string
    owner: string
    owner_name: string | null
    place: number
    kind: string
    name: string
    data: string
    counter: number
    created: number
    last_used: number | null
  }
  recovery_codes: { owner: string; hash: string }
}
