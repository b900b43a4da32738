/** The letters of the typeface that the page brings, as CSS writes ranges. Those of other scripts are the system's. */
export const PIECES = {
  // English and the West of Europe, with the signs that answers and the page use.
  latin: "U+20-7E,U+A0-FF,U+131,U+152-153,U+2C6,U+2DA,U+2DC,U+2010-203A,U+20AC,U+2122,U+2190-2193,U+2212",
  // The rest of Europe, and Turkish.
  "latin-ext": "U+100-130,U+132-151,U+154-17F,U+192,U+218-21B,U+1E9E",
};

export const WEIGHTS = { min: 400, max: 700 };
