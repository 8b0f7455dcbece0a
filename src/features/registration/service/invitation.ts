/** An invitation to a registration form. */
export interface Invitation {
  readonly id: string
  /** The application whose form it opens. */
  readonly form: string
  readonly email: string
  /** Attributes that the registration takes from the invitation. */
  readonly attributes: Readonly<Record<string, string>>
  readonly invitedBy: string
  readonly state: 'open' | 'accepted' | 'revoked'
  readonly created: Date
  readonly expires: Date
  /** How often its mail was sent. */
  readonly sent: number
}
