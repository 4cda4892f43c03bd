// Readers made up for trying the judge; nobody wrote these reviews.
export const samples = {
  one: {
    "Mara, who likes quiet books": {
      query: "A retired postman walks his old round one last time and reads aloud, at each door, the letter he once failed to deliver.",
      entries: [
        { text: "A lighthouse keeper answers letters that were never sent.", review: "Quiet and warm. I read it twice, slowly.", score: 9 },
        { text: "Two racing drivers swap lives and cars for one season.", review: "All noise, and nobody to care for.", score: 3 },
        { text: "A botanist spends a winter alone with a seed that will not sprout.", review: "Patient in the best way; the ending earns its silence.", score: 8 },
      ],
    },
    "Tom, who wants speed": {
      query: "A retired postman walks his old round one last time and reads aloud, at each door, the letter he once failed to deliver.",
      entries: [
        { text: "A courier must cross a flooded city before the dams open.", review: "Never lets go. Finished it in one night.", score: 9 },
        { text: "An old couple repaints their house, room by room.", review: "Nothing happens, beautifully. Not for me.", score: 2 },
        { text: "A pilot lands a plane that nobody on board remembers boarding.", review: "Clever and quick, a little thin at the end.", score: 7 },
      ],
    },
  },
  two: {
    "Ida, who likes endings left open": {
      aspect: "Ending",
      text_a: "The bridge opens. She is not there, and the ribbon is cut by a child who asks who built it.",
      text_b: "She cuts the ribbon herself, everyone cheers, and the mayor names the bridge after her.",
      entries: [
        { text_a: "The sisters part at the station, and neither looks back.", text_b: "The sisters buy the old house and move in together.", preference: "A" },
        { text_a: "The thief is caught, confesses, and is forgiven.", text_b: "The thief boards a ferry; we never learn which.", preference: "B" },
      ],
    },
  },
};
