/** Encrypts texts that scripts keep elsewhere, such as in a cluster. It opens what scripts encrypted, and no other secret. */
export interface ScriptSecrets {
  seal(text: string): Promise<string>
  /** Throws BAD_REQUEST for a text that `seal` did not return. */
  open(sealed: string): Promise<string>
}
