/** The login of callers who did not sign in, in lower case. It is reserved for them. */
export const anonymousLogin = 'anonymous'
